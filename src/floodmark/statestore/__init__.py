"""The state of a checkpoint over storage: opened, shown, compared, exported, written."""
