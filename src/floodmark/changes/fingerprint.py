"""Describes a checkpoint's position as a short text: a plan holds only for that position.

It covers the ids of both logs, the identity, the bytes of the newest entries and the sources' own
files. It does not read the state: a batch that writes state also writes the logs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from floodmark.checkpoint.layout import COMMITS, METADATA, OFFSETS, SOURCES, batch_id
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import FileGone, FloodmarkError
from floodmark.storage.files import Files

BLOCK = b"floodmark: "
"""The beginning of the entry that keeps Spark from starting during a change."""
_NEWEST = 3


@dataclass(frozen=True)
class Fingerprint:
    digest: str
    words: str


def fingerprint(files: Files) -> Fingerprint:
    offsets = _numbers(files, OFFSETS)
    commits = _numbers(files, COMMITS)
    read = [f"{OFFSETS}/{batch}" for batch in offsets[-_NEWEST - 1 :]]
    read += [f"{COMMITS}/{batch}" for batch in commits[-_NEWEST:]]
    contents = files.read_many([METADATA, *map(RelativePath, read)])
    blocks = {path for path, data in contents.items() if _is_block(data)}
    planned = [batch for batch in offsets if f"{OFFSETS}/{batch}" not in blocks]
    kept = {f"{OFFSETS}/{batch}" for batch in planned[-_NEWEST:]}
    digest = hashlib.sha256()
    digest.update(f"{planned} {commits} {_source_names(files)}".encode())
    for path, data in sorted(contents.items()):
        if path in blocks or (path.startswith(OFFSETS) and path not in kept):
            continue
        digest.update(f"\n{path} ".encode() + _bytes(data))
    return Fingerprint(digest.hexdigest(), _words(planned, commits))


def _numbers(files: Files, log: str) -> list[int]:
    names = files.level(log).files
    return sorted(batch for name in names if (batch := batch_id(name)) is not None)


def _source_names(files: Files) -> list[str]:
    return sorted(
        f"{folder}/{name}"
        for source in files.level(SOURCES).folders
        for folder in (f"{SOURCES}/{source}",)
        for name in files.level(folder).files
        if not name.startswith(".")
    )


def _is_block(data: bytes | FloodmarkError) -> bool:
    return isinstance(data, bytes) and data.startswith(BLOCK)


def _bytes(data: bytes | FloodmarkError) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, FileGone):
        return b"\0gone"
    raise data


def _words(planned: list[int], commits: list[int]) -> str:
    if not planned and not commits:
        return "no batch yet"
    committed = f"batch {commits[-1]} committed" if commits else "no batch committed"
    if planned and (not commits or planned[-1] > commits[-1]):
        return f"{committed}, batch {planned[-1]} planned"
    return committed
