"""Finds what is known about a file source's list of seen files, and about its lost files.

Only a lost entry named its files. The input folder shows how many they can be at most: files that
are there, that no other entry names, and that are older than the newest batch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from floodmark.changes.repair.working_copy import WorkingCopy
from floodmark.checkpoint.layout import SOURCES, names_in
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.text import decode
from floodmark.connectors.files.file_log import (
    COMPACT,
    SourceFile,
    log_id,
    missing_ids,
    names_to_read,
    parse_source_log,
)
from floodmark.errors import FloodmarkError, MalformedFile

_MOST = 1000
_MOST_LISTED = 300_000
_HIDDEN = ("_", ".")


@dataclass(frozen=True)
class SeenList:
    """A list of seen files, as far as it can be read."""

    source: str
    names: tuple[str, ...]
    files: tuple[SourceFile, ...]
    lost: frozenset[int]
    """Entries that are gone or torn."""

    @property
    def folder(self) -> str:
        return f"{SOURCES}/{self.source}"

    def is_whole_to(self, entry: int) -> bool:
        """Whether the list is complete if it is cut off after an entry."""
        kept = [name for name in self.names if (log_id(name) or 0) <= entry]
        ends = any(log_id(name) == entry for name in kept)
        return ends and entry < min(self.lost) and not missing_ids(kept)


def seen_list(work: WorkingCopy, source: str, last: int) -> SeenList:
    """Read a source's list; `last` is the entry with which the newest batch ends."""
    folder = f"{SOURCES}/{source}"
    names = names_in(work.checkpoint.files, folder)
    torn = {
        number
        for name in names
        if (fault := work.evidence.faults.get(f"{folder}/{name}"))
        and not fault.newer
        and (number := log_id(name)) is not None
    }
    newest = work.evidence.seen_files.get(source, -1)
    gone = {*missing_ids(names), *range(newest + 1, min(last, newest + _MOST) + 1)}
    files = [file for name in names_to_read(names) for file in readable(work, f"{folder}/{name}")]
    return SeenList(source, names, tuple(files), frozenset(torn | gone))


def readable(work: WorkingCopy, path: str) -> tuple[SourceFile, ...]:
    """Return the complete lines of an entry."""
    try:
        lines = decode(work.files.read(RelativePath(path))).split("\n")[1:]
    except FloodmarkError:
        return ()
    name = path.rsplit("/", 1)[1]
    own = log_id(name)
    found: list[SourceFile] = []
    for line in lines:
        try:
            found += parse_source_log(f"v1\n{line}".encode())
        except MalformedFile:
            continue
    return tuple(
        file
        for file in found
        if file.batch_id == own or (name.endswith(COMPACT) and file.batch_id < (own or 0))
    )


def unlisted(work: WorkingCopy, seen: SeenList) -> int | None:
    """Count the files in the input folder that are old enough to be seen, but not listed."""
    root = _common_folder([file.readable_path for file in seen.files])
    if root is None:
        return None
    try:
        listing = work.opened(root).list(most=_MOST_LISTED)
    except FloodmarkError:
        return None
    if not listing.complete:
        return None  # an unreadable folder, or a path that leads too high
    there = listing.files
    named = {file.readable_path[len(root) + 1 :] for file in seen.files}
    until = max(
        (
            entry.metadata.batch_timestamp_ms
            for entry in work.checkpoint.offsets.values()
            if entry.metadata
        ),
        default=0,
    )
    return sum(
        file.path not in named
        and not any(part.startswith(_HIDDEN) for part in file.path.split("/"))
        and (file.mtime_ms is None or file.mtime_ms <= until)
        for file in there
    )


def _common_folder(paths: list[str]) -> str | None:
    """Return the folder above all these paths; None if that is the storage's root."""
    if not paths:
        return None
    common: list[str] = []
    for parts in zip(*(path.split("/")[:-1] for path in paths), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    root = "/".join(common)
    # A path that lost a slash, such as file://tmp, must not make it the whole disk.
    is_top = not root.rpartition("://")[2].strip("/") or re.fullmatch(r"\w+:/*", root)
    return None if is_top else root
