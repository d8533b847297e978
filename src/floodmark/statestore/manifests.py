"""Reads from state files what their names do not show: lineages and the tables of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floodmark.checkpoint.layout import FileInfo, StateFile
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.state_chain import Steps
from floodmark.errors import MalformedFile

if TYPE_CHECKING:
    from floodmark.state.files.rocksdb import RocksSnapshot

Read = Callable[[RelativePath], bytes]


@dataclass(frozen=True)
class StoredManifests:
    """Reads lineages and tables from the files of a checkpoint."""

    read: Read

    def lineage(self, changelog: StateFile) -> Steps:
        from floodmark.state.files.rocksdb import parse_changelog

        return parse_changelog(self.read(RelativePath(changelog.path))).lineage

    def tables(self, snapshot: StateFile) -> tuple[FileInfo, ...]:
        return tables_of(snapshot.path, self.snapshot(snapshot.path))

    def snapshot(self, path: str) -> RocksSnapshot:
        """Return the manifest of a RocksDB snapshot; errors name a damaged file."""
        from floodmark.state.files.rocksdb import read_snapshot

        try:
            return read_snapshot(self.read(RelativePath(path)))
        except MalformedFile as error:
            raise MalformedFile(
                f"{path} cannot be read: {error.what}",
                error.why,
                "Restore the file from a backup, or choose another batch; `floodmark doctor "
                "--read-data` finds other damaged files.",
            ) from None


def tables_of(path: str, snapshot: RocksSnapshot) -> tuple[FileInfo, ...]:
    """Return the SSTs and archived logs that a snapshot names, which are beside its zip."""
    folder = path.rpartition("/")[0]
    return tuple(
        FileInfo(f"{folder}/{place}/{table.stored}", table.size)
        for place, tables in (("SSTs", snapshot.tables), ("logs", snapshot.logs))
        for table in tables
    )
