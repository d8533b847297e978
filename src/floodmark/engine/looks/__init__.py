"""One look a file: NAMES, what it may find; judge(situation), what it finds."""
