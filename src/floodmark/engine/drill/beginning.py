"""Makes what the runs of a drill begin with: copies of the pipeline's checkpoint and sinks.

The first run makes the copies, and all runs begin with them, as links where the disk supports
links. The copied checkpoint keeps its batches, state, watermark and query id. Its sources begin
with the sample. A batch that was in flight finishes first, without input. Without a usable
checkpoint, the drill begins with a new one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.addresses import public_url
from floodmark.checkpoint.layout import OFFSETS, SOURCES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import OffsetEntry, render_offsets
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.files.file_log import SINK_LOG, with_root
from floodmark.engine.app.choosing import place_of
from floodmark.engine.code.rehearse import fork_checkpoint
from floodmark.engine.drill.run_spec import CHECKPOINT, RunSpec
from floodmark.errors import CannotRead, FloodmarkError, NoAnswer, NotACheckpoint
from floodmark.storage.file_copy import copy_file
from floodmark.storage.files import WritableFiles, open_files
from floodmark.storage.load import load

_BEGINNING = "beginning.json"
_MOST_BYTES = 64 * 1024 * 1024
"""The limit for a sink, as the drill compares all its rows after each run."""
FRESH = "as --fresh asks"


@dataclass(frozen=True)
class Beginning:
    checkpoint: str | None
    """The checkpoint that was copied; None: the drill makes a new one."""
    batch: int | None
    """The last batch that finished in the copied checkpoint."""
    first: int
    """The first batch of the drill."""
    why: str
    """The reason for a new checkpoint."""


class Copies:
    """Copies the real checkpoint and the real sinks for one run."""

    def __init__(self, real: str | None, spec: RunSpec, do: Callable[..., Any]) -> None:
        """`do` calls one of DEEDS."""
        self._do = do
        self._real = real
        self._folder = Path(spec.folder)
        self._shared = Path(spec.shared) / "real"
        self.beginning = _new(FRESH) if not spec.carry_on else self._decided()
        if self.beginning.checkpoint is not None and not (self._folder / CHECKPOINT).exists():
            _fork(self._shared / CHECKPOINT, self._folder / CHECKPOINT)

    def bring(self, real: str, place: Path) -> bool:
        """Put a copy of a real sink at its place, before the run first reads it.

        Returns False where the sink begins empty.
        """
        if self.beginning.checkpoint is None:
            return False
        kept = self.original(place)
        if place.exists():
            return kept.exists()
        if not kept.exists():
            origin = Path(place_of(real))
            if "://" in place_of(real) or not origin.is_dir() or _size(origin) > _MOST_BYTES:
                return False
            self._require_still()
            self._do("tree", str(origin), str(kept))
            self._require_still()
        copy_tree(str(kept), str(place))
        return True

    def original(self, place: Path) -> Path:
        """Return the copy of a sink as it was when the drill began."""
        return self._shared / "sinks" / place.name

    def _decided(self) -> Beginning:
        """Return the beginning that the first run chose for all runs."""
        told = self._shared / _BEGINNING
        if told.exists():
            return Beginning(**json.loads(told.read_text(encoding="utf-8")))
        self._shared.mkdir(exist_ok=True)
        found = Beginning(**self._do("checkpoint", self._real, str(self._shared / CHECKPOINT)))
        told.write_text(json.dumps(asdict(found)), encoding="utf-8")
        return found

    def _require_still(self) -> None:
        """Refuse a checkpoint that changed meanwhile: the sinks' copies would not fit it."""
        assert self._real is not None
        latest = load(open_files(self._real)).latest_batch
        if latest is not None and latest + 1 != self.beginning.first:
            raise NoAnswer(
                "the pipeline's checkpoint changes while the drill copies it: batch "
                f"{latest} is new",
                "The copies of the checkpoint and of the sinks would show different moments.",
                "Stop the query during the drill, or begin with a new checkpoint: --fresh",
            )


def copy_checkpoint(real: str | None, target: str) -> dict[str, Any]:
    """Copy the checkpoint for a run; return the reason if there is no copy."""
    return asdict(_copied(real, Path(target)))


def _copied(real: str | None, target: Path) -> Beginning:
    if real is None:
        return _new("the code names no checkpoint")
    shown = public_url(real)
    try:
        files = open_files(real)
        checkpoint = load(files)
    except (CannotRead, NotACheckpoint):
        return _new(f"there is no checkpoint at {shown}")
    except FloodmarkError as error:
        return _new(f"{shown} cannot be copied: {error.what}")
    why = _why_not(checkpoint)
    if why:
        return _new(f"{shown} {why}")
    copy = open_files(str(target))
    fork_checkpoint(files, checkpoint, copy, target)
    for batch in checkpoint.offset_ids[-2:]:
        entry = _without_offsets(checkpoint.offsets[batch])
        copy.write(RelativePath(f"{OFFSETS}/{batch}"), render_offsets(entry))
    _delete_sources(copy)
    latest = checkpoint.latest_batch
    assert latest is not None
    return Beginning(shown, checkpoint.committed_batch, latest + 1, "")


def _new(why: str) -> Beginning:
    return Beginning(None, None, 0, why)


def _why_not(checkpoint: Checkpoint) -> str:
    committed, latest = checkpoint.committed_batch, checkpoint.latest_batch
    if committed is None or latest is None:
        return "has no finished batch"
    if latest not in (committed, committed + 1):
        return f"has batches up to {latest} in its log, of which {committed} is the last finished"
    needed = [one for one in (latest, latest - 1) if one >= 0]
    gone = [one for one in needed if one not in checkpoint.offsets]
    if gone:
        return f"has no entry offsets/{gone[0]} that can be read"
    return ""


def _without_offsets(entry: OffsetEntry) -> OffsetEntry:
    """Return the entry as if no source had given input yet; a named source then has no line."""
    if entry.version > 1:
        return replace(entry, offsets=())
    return replace(entry, offsets=tuple((name, None) for name, _ in entry.offsets))


def _delete_sources(copy: WritableFiles) -> None:
    copy.delete(
        RelativePath(file.path) for file in copy.list().files if file.path.startswith(f"{SOURCES}/")
    )


def _fork(origin: Path, target: Path) -> None:
    """Copy a checkpoint to its final folder, as its metadata contains its path; no driver runs."""
    shutil.rmtree(target, ignore_errors=True)
    files = open_files(str(origin))
    fork_checkpoint(files, load(files), open_files(str(target)), target)


def _size(folder: Path) -> int:
    return sum(one.stat().st_size for one in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    return (one for one in folder.rglob("*") if one.is_file())


def copy_tree(origin: str, target: str) -> None:
    """Copy a folder completely or not at all; the driver may be killed at any time."""
    goal = Path(target)
    beside = goal.with_name(f".{goal.name}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    files, copy = open_files(origin), open_files(str(beside))
    listed = {file.path: None for file in files.list().files}  # in their order
    for path in listed:
        folder, _, name = path.rpartition("/")
        if folder != SINK_LOG:
            copy_file(files, path, copy, path)
        elif not name.startswith("."):  # the checksum would be that of the original
            entry = with_root(files.read(RelativePath(path)), goal.absolute().as_uri(), listed)
            copy.write(RelativePath(path), entry)
    beside.rename(goal)


DEEDS: Mapping[str, Callable[..., Any]] = {"checkpoint": copy_checkpoint, "tree": copy_tree}
"""Functions that read the real checkpoint and sinks, in a process outside the write fence."""
