"""Says what a folder without a checkpoint is: empty, part of one, or above checkpoints."""

from __future__ import annotations

import shlex

from floodmark.checkpoint.layout import COMMITS, NOTES, OFFSETS, SOURCES, STATE, FileInfo
from floodmark.errors import NotACheckpoint
from floodmark.storage.files import Files


def not_a_checkpoint(
    files: Files, listed: tuple[FileInfo, ...], broken_metadata: str | None = None
) -> NotACheckpoint:
    if broken_metadata:
        return NotACheckpoint(
            f"{files.root} has a metadata file that cannot be read, and no batch",
            f"metadata: {broken_metadata}",
            "If a query began here, remove the folder and let it start over.",
        )
    if not listed:
        return NotACheckpoint(
            f"{files.root} is empty: there is no checkpoint in it",
            "A query that starts here starts over.",
            "Give the folder that the query has as its checkpointLocation.",
        )
    below = sorted(
        file.path[: -len("/metadata")]
        for file in listed
        if file.path.endswith("/metadata") and not file.path.startswith(f"{STATE}/")
    )
    if below:
        return NotACheckpoint(
            f"{files.root} is not a checkpoint, but holds some",
            f"For example {files.root.rstrip('/')}/{below[0]}.",
            f"List them all with: floodmark scan {shlex.quote(files.root)}",
        )
    whole, _, part = files.root.rstrip("/").rpartition("/")
    if whole and part in (OFFSETS, COMMITS, SOURCES, STATE, NOTES):
        return NotACheckpoint(
            f"{files.root} is not a checkpoint",
            f"It looks like the {part} folder of one.",
            f"Give the whole checkpoint: {whole}",
        )
    return NotACheckpoint(
        f"{files.root} is not a checkpoint",
        "It has neither a metadata file nor an offsets or commits folder.",
        "Give the folder that the query has as its checkpointLocation.",
    )
