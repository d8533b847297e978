"""Holds words that both kinds of checkpoint use for files, and whether a restart reads them."""

from __future__ import annotations

from enum import Enum

from floodmark.checkpoint.layout import NOTES, PROGRESS

_OUR_FOLDERS = {
    "starts": "What a start of the query ran with: sources, sink, plan.",
    "journal": "A change that floodmark made, step by step.",
    "kept": "What a change replaced, kept for `floodmark undo`.",
    PROGRESS: "One line of progress for each batch.",
    "lease.json": "Which run owns this checkpoint.",
    "epochs": "Which runs have owned this checkpoint.",
    "start.json": "Where sources begin that take their place as an option.",
}


class Reads(str, Enum):
    """Whether Spark opens the file when the query starts again."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


ToldFile = tuple[str, Reads, str]
"""A file's description, whether a restart reads it, and why."""


def told_note(path: str) -> ToldFile | None:
    """Describe a file that floodmark keeps beside Spark's; None for any other file."""
    top, _, rest = path.partition("/")
    if top != NOTES:
        return None
    words = _OUR_FOLDERS.get(rest.split("/")[0], "A note of floodmark's.")
    return words, Reads.NO, "Spark ignores the folder; floodmark reads it."
