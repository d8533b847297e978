"""The folder that one scenario runs in: its inputs, its checkpoint, and what is kept of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path("/tmp/floodmark-golden")
KEPT = ROOT / "kept"

Rows = Sequence[Mapping[str, Any]]

# Input files get mtimes a second apart: the file source takes the oldest first.
_FIRST_MTIME = 1_790_000_000


@dataclass(frozen=True)
class Place:
    name: str

    @property
    def folder(self) -> Path:
        return ROOT / self.name

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def kept(self) -> Path:
        return KEPT / self.name

    def input(self, source: str = "in") -> Path:
        folder = self.folder / source
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.kept, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def write(self, source: str, files: Sequence[Rows]) -> None:
        """One more JSON file for each of `files`, in the order they are to be read."""
        folder = self.input(source)
        for number, rows in enumerate(files, start=len(list(folder.glob("*.json")))):
            beside = self.folder / f".{source}-{number}"
            beside.write_text("".join(json.dumps(row) + "\n" for row in rows))
            os.utime(beside, (_FIRST_MTIME + number, _FIRST_MTIME + number))
            beside.rename(folder / f"{number:02}.json")

    def keep(self, *, side_files: bool = False) -> None:
        """Put the checkpoint aside as it is now, before anything else touches it."""
        ignore = None if side_files else _hadoop_side_files
        shutil.copytree(self.checkpoint, self.kept / "checkpoint", ignore=ignore)

    def keep_sink_log(self, output: str) -> None:
        shutil.copytree(
            self.folder / output / "_spark_metadata",
            self.kept / "sink" / "_spark_metadata",
            ignore=_hadoop_side_files,
        )


def _hadoop_side_files(_: str, names: list[str]) -> list[str]:
    # Hidden ones only: `3.delta.crc` without a dot is Spark's own, and part of the format.
    return [name for name in names if name.startswith(".") and name.endswith(".crc")]
