"""Finds checkpoints with listings of very many files, instead of one request for each folder.

S3 lists a thousand names at a time, in order, from any name on. So one page shows dozens of small
checkpoints. The state of large checkpoints and folders without checkpoints are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from floodmark.checkpoint.layout import (
    COMMITS,
    FLOW_CHECKPOINTS,
    METADATA,
    NOTES,
    OFFSETS,
    SOURCES,
    STATE,
    FileInfo,
    is_dstreams_checkpoint,
)
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files, Folder, Listing, next_page
from floodmark.storage.listing.large_listing import LAST
from floodmark.storage.listing.scan import looks_like_checkpoint

_LOGS = (OFFSETS, COMMITS)
# A folder with this many names and no sign of a checkpoint is read level by level.
_DOUBTED = 5000


@dataclass(frozen=True)
class ListedFiles:
    """A location whose files are already known: its first listing costs nothing."""

    files: Files
    listing: Listing

    @property
    def root(self) -> str:
        return self.files.root

    @property
    def reads_cost(self) -> bool:
        return self.files.reads_cost

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        return self.files.list(folder, most) if folder else self.listing

    def level(self, folder: str = "") -> Folder:
        return self.files.level(folder)

    def read(self, path: RelativePath) -> bytes:
        return self.files.read(path)

    def read_many(self, paths: Iterable[RelativePath]) -> dict[str, bytes | FloodmarkError]:
        return self.files.read_many(paths)

    def below(self, folder: RelativePath) -> Files:
        return self.files.below(folder)


@dataclass(frozen=True)
class Found:
    folder: str
    listing: Listing | None
    """A checkpoint's listing; None where the folder itself must be read to know what it is."""


class _Gathered:
    """Collects the names of a folder that may be a checkpoint."""

    def __init__(self, folder: str, whole: bool) -> None:
        self.folder = folder
        self._start = len(folder) + 1 if folder else 0
        self._files: list[FileInfo] = []
        self._folders: set[str] = set()
        self._names: set[str] = set()
        # Names before the first one that showed what the folder is were not kept.
        self._whole = whole
        self._complete = True

    def holds(self, path: str) -> bool:
        return not self.folder or path.startswith(self.folder + "/")

    def add(self, file: FileInfo) -> None:
        path = file.path[self._start :]
        top, separator, _ = path.partition("/")
        (self._folders if separator else self._names).add(top)
        self._files.append(FileInfo(path, file.size, file.mtime_ms))

    @property
    def _is_checkpoint(self) -> bool:
        return looks_like_checkpoint(Folder(tuple(self._folders), tuple(self._names)))

    @property
    def is_doubtful(self) -> bool:
        return len(self._files) > _DOUBTED and not self._is_checkpoint

    def pass_over(self, path: str) -> str | None:
        """Return the name after the state or the sources, where a page has ended inside them."""
        part = path[self._start :].partition("/")[0]
        if part not in (STATE, SOURCES, NOTES) or not self._is_checkpoint:
            return None
        self._complete = self._complete and part == NOTES
        return f"{path[: self._start]}{part}/{LAST}"

    def found(self) -> Found:
        known = self._whole and self._is_checkpoint
        return Found(self.folder, Listing(tuple(self._files), self._complete) if known else None)


def list_found(files: Files, first: Listing, passed_over: tuple[str, ...]) -> Iterator[Found]:
    """Yield folders that look like checkpoints, in the order of their names.

    `first` is the first page; `passed_over` are beginnings of names without checkpoints.
    """
    page: Listing | None = first
    gathered: _Gathered | None = None
    before = ""
    while page is not None:
        for file in page.files:
            path = file.path
            if gathered is not None and not gathered.holds(path):
                yield gathered.found()
                gathered = None
            folder = gathered.folder if gathered else _opened_by(path, passed_over)
            if gathered is None and folder is not None:
                whole = not (before.startswith(folder + "/") if folder else before)
                gathered = _Gathered(folder, whole)
            if gathered is not None:
                gathered.add(file)
            before = path
        if page.complete:
            break
        last = page.files[-1].path if page.files else before
        jump = gathered.pass_over(last) if gathered else _behind(last, passed_over)
        if gathered is not None and gathered.is_doubtful:
            yield Found(gathered.folder, None)
            if not gathered.folder:
                return
            jump, gathered = f"{gathered.folder}/{LAST}", None
        page = next_page(files, jump or last)
    if gathered is not None:
        yield gathered.found()


def _opened_by(path: str, passed_over: tuple[str, ...]) -> str | None:
    """Return the highest folder that a name shows to be a possible checkpoint."""
    parts = path.split("/")
    for at, part in enumerate(parts[:-1]):
        if part == FLOW_CHECKPOINTS:
            return "/".join(parts[: at + 1])
        if part in (*_LOGS, NOTES):
            return "/".join(parts[:at])
        if part.startswith(passed_over):
            return None
    name = parts[-1]
    return "/".join(parts[:-1]) if name == METADATA or is_dstreams_checkpoint(name) else None


def _behind(path: str, passed_over: tuple[str, ...]) -> str | None:
    parts = path.split("/")
    for at, part in enumerate(parts[:-1]):
        if part.startswith(passed_over):
            return "/".join([*parts[: at + 1], LAST])
    return None
