"""Collects the facts about one checkpoint, and reads each of its files once.

A file that cannot be read or understood becomes a fault; it does not stop the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from floodmark.checkpoint.checksums.sidefiles import agrees, is_itself_damaged, without_flips
from floodmark.checkpoint.evidence import (
    Evidence,
    Fault,
    NotedStart,
)
from floodmark.checkpoint.layout import (
    FileInfo,
)
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.state_chain import StateIndex, Steps, StoreChain, next_batch
from floodmark.connectors.source import SourceOffset
from floodmark.errors import (
    CannotRead,
    FileGone,
    FloodmarkError,
    UnknownVersion,
)
from floodmark.storage.files import Files, Folder, Listing, local_path, plain_path

Parser = Callable[[bytes], Any]


class KeptFiles:
    """`Files` that remembers file contents, so that the logs are not read twice."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.root = files.root
        self.reads_cost = files.reads_cost
        self.contents: dict[str, bytes] = {}

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        return self._files.list(folder, most)

    def level(self, folder: str = "") -> Folder:
        return self._files.level(folder)

    def read(self, path: str) -> bytes:
        return self._files.read(RelativePath(path))

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | FloodmarkError]:
        found = self._files.read_many(map(RelativePath, paths))
        self.contents.update((path, data) for path, data in found.items() if type(data) is bytes)
        return found

    def plain_path(self, path: str) -> str | None:
        return plain_path(self._files, RelativePath(path))

    def below(self, folder: str) -> Files:
        return self._files.below(RelativePath(folder))


class Gathering:
    """The facts collected so far."""

    def __init__(self, files: KeptFiles, checkpoint: Checkpoint) -> None:
        self.files = files
        self.checkpoint = checkpoint
        self.sizes = {file.path: file.size for file in checkpoint.files}
        self.lineages: dict[str, Steps] = {}
        self.needs = self.chains()
        self.faults: dict[str, Fault] = {}
        self.positions: dict[int, tuple[SourceOffset, ...]] = {}
        self.tables: dict[str, tuple[FileInfo, ...]] = {}
        self.disagreeing: set[str] = set()
        self.cures: dict[str, bytes] = {}
        self.altered: set[str] = set()
        self.strays: dict[str, str] = {}
        self.checksums: dict[str, str] = {}
        self.schemas: set[str] = set()
        self.keyed: set[int] = set()
        self.seen_files: dict[str, int] = {}
        self.starts: tuple[NotedStart, ...] = ()
        self.codecs: frozenset[str] = frozenset()

    def evidence(self, read_data: bool) -> Evidence:
        return Evidence(
            self.checkpoint,
            _places(self.files.root),
            int(time.time() * 1000),
            MappingProxyType(self.faults),
            MappingProxyType(self.positions),
            MappingProxyType(self.tables),
            frozenset(self.disagreeing),
            MappingProxyType(self.cures),
            frozenset(self.altered),
            MappingProxyType(self.checksums),
            frozenset(self.schemas),
            MappingProxyType(self.seen_files),
            read_data,
            MappingProxyType(self.strays),
            starts=self.starts,
            codecs=self.codecs,
            lineages=MappingProxyType(self.lineages),
            keyed=frozenset(self.keyed),
        )

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the files that can be read; the others become faults."""
        wanted = list(paths)
        found = self.files.read_many(path for path in wanted if path not in self.files.contents)
        for path, data in found.items():
            if isinstance(data, FloodmarkError):
                self.fail(path, data)
        contents = self.files.contents
        return {path: contents[path] for path in wanted if path in contents}

    def fail(self, path: str, error: FloodmarkError) -> None:
        if isinstance(error, FileGone):
            return  # a running query removed it after it was listed
        reason = f"{error.what}: {error.why}" if isinstance(error, CannotRead) else error.what
        self.faults[path] = Fault(
            reason, isinstance(error, UnknownVersion), self.sizes.get(path) == 0
        )

    def parse(self, path: str, data: bytes, parser: Parser) -> Any:
        try:
            return parser(data)
        except FloodmarkError as error:
            self.fail(path, error)
            return None

    def chains(self) -> tuple[StoreChain, ...]:
        index = StateIndex(self.checkpoint, lineage=lambda file: self.lineages.get(file.path))
        return index.chains(next_batch(self.checkpoint) or 0)

    def check_side(self, path: str, data: bytes, side: bytes) -> bool:
        """Whether the bytes are those that the side file was written for."""
        if agrees(side, data):
            return True
        self.disagreeing.add(path)
        mended = without_flips(side, data)
        if mended is not None:
            self.cures[path] = mended
        elif not is_itself_damaged(side, data):
            self.altered.add(path)
        return False


def _places(root: str) -> tuple[str, ...]:
    local = local_path(root)
    if local is None:
        return (root.rstrip("/"),)
    # Spark writes a path as it was given; a reader may resolve its links.
    return str(Path(local).absolute()), str(Path(local).resolve())
