"""Shows a folder as it would be after changes, without making them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import CannotRead, FileGone, FloodmarkError
from floodmark.storage.files import Files, Folder, Listing, plain_path


class Overlay:
    """Accepts changes as `WritableFiles`, but keeps them; other content is the folder's."""

    def __init__(self, files: Files, root: str | None = None) -> None:
        self._files = files
        self.root = files.root if root is None else root
        self.reads_cost = files.reads_cost
        self.written: dict[str, bytes] = {}
        self.removed: set[str] = set()
        self.not_given: list[CannotRead] = []
        """Files that the storage did not give, but may give when it is asked again."""

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        below = self._files.list(folder, most)
        hidden = self.removed | self.written.keys()
        prefix = f"{folder}/" if folder else ""
        added = [
            FileInfo(path, len(data))
            for path, data in self.written.items()
            if path.startswith(prefix)
        ]
        kept = [file for file in below.files if file.path not in hidden]
        return Listing(tuple(sorted(kept + added)), below.complete, below.unreadable)

    def level(self, folder: str = "") -> Folder:
        below = self._files.level(folder)
        prefix = f"{folder}/" if folder else ""
        added = [path[len(prefix) :] for path in self.written if path.startswith(prefix)]
        names = {name for name in below.files if prefix + name not in self.removed}
        return Folder(
            tuple(sorted({*below.folders, *(n.split("/")[0] for n in added if "/" in n)})),
            tuple(sorted({*names, *(name for name in added if "/" not in name)})),
            below.others,
        )

    def read(self, path: RelativePath) -> bytes:
        if path in self.written:
            return self.written[path]
        if path in self.removed:
            raise FileGone(f"{path} is not there")
        try:
            return self._files.read(path)
        except CannotRead as error:
            self._note(error)
            raise

    def _note(self, error: bytes | FloodmarkError) -> None:
        if isinstance(error, CannotRead) and error.may_come:
            self.not_given.append(error)

    def read_many(self, paths: Iterable[RelativePath]) -> dict[str, bytes | FloodmarkError]:
        wanted = list(paths)
        untouched = [p for p in wanted if p not in self.written and p not in self.removed]
        below = self._files.read_many(untouched)
        for answer in below.values():
            self._note(answer)
        found: dict[str, bytes | FloodmarkError] = {}
        for path in wanted:
            if path in self.written:
                found[path] = self.written[path]
            elif path in below:
                found[path] = below[path]
            else:
                found[path] = FileGone(f"{path} is not there")
        return found

    def plain_path(self, path: RelativePath) -> str | None:
        touched = path in self.written or path in self.removed
        return None if touched else plain_path(self._files, path)

    def write(self, path: RelativePath, data: bytes) -> None:
        path = RelativePath(path)
        self.written[path] = data
        self.removed.discard(path)

    def put(self, path: RelativePath, local: str) -> None:
        self.write(path, Path(local).read_bytes())

    def create(self, path: RelativePath, data: bytes) -> bool:
        folder, _, name = path.rpartition("/")
        if name in self.level(folder).files:
            return False
        self.write(path, data)
        return True

    def delete(self, paths: Iterable[RelativePath]) -> None:
        for path in map(RelativePath, paths):
            self.written.pop(path, None)
            self.removed.add(path)

    def below(self, folder: RelativePath) -> Overlay:
        made = Overlay(self._files.below(folder))
        made.not_given = self.not_given
        return made
