"""Reads a checkpoint's logs before a start, without its state."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, SOURCES, STATE, FileInfo
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import NotACheckpoint
from floodmark.storage.files import Files, Listing
from floodmark.storage.load import load_listed


@dataclass(frozen=True)
class Saved:
    """The checkpoint of a start; `checkpoint` is None where the query starts over."""

    exists: bool
    """True where the folder exists and is not empty."""
    checkpoint: Checkpoint | None
    stateful: bool

    @property
    def resumes(self) -> bool:
        return self.checkpoint is not None and self.checkpoint.latest_batch is not None


def read_saved(files: Files) -> Saved:
    top = files.level()
    if not top.folders and not top.files:
        return Saved(False, None, False)
    listed = [FileInfo(METADATA, 1)] if METADATA in top.files else []
    for folder in (OFFSETS, COMMITS, SOURCES):
        if folder in top.folders:
            listed += files.list(folder).files
    try:
        checkpoint = load_listed(files, Listing(tuple(listed)))
    except NotACheckpoint:
        checkpoint = None
    stateful = STATE in top.folders and bool(files.level(STATE).folders)
    return Saved(True, checkpoint, stateful)
