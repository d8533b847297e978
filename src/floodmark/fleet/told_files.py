"""Whether a restart reads a file, and the words for it: shared by both kinds of checkpoint."""

from __future__ import annotations

from enum import Enum

from floodmark.checkpoint.layout import NOTES

_OUR_FOLDERS = {
    "starts": "What a start of the query ran with: sources, sink, plan.",
    "journal": "A change that floodmark made, step by step.",
    "kept": "What a change replaced, kept for `floodmark undo`.",
    "progress.jsonl": "One line of progress for each batch.",
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
"""What a file is, whether a restart reads it, and why."""


def told_note(path: str) -> ToldFile | None:
    """Of a file that floodmark keeps beside Spark's; None for any other."""
    top, _, rest = path.partition("/")
    if top != NOTES:
        return None
    words = _OUR_FOLDERS.get(rest.split("/")[0], "A note of floodmark's.")
    return words, Reads.NO, "Spark ignores the folder; floodmark reads it."


def checksum_of(path: str) -> str | None:
    """The file whose checksum Hadoop keeps in this one."""
    folder, _, name = path.rpartition("/")
    if not (name.startswith(".") and name.endswith(".crc")):
        return None
    return f"{folder}/{name[1:-4]}" if folder else name[1:-4]
