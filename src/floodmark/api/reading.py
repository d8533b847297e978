"""Provides the verbs that read: each returns data, and changes nothing."""

from __future__ import annotations

import gc
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING

from floodmark.api.arguments import (
    Storage,
    milliseconds,
    require_state_extra,
    structured,
)
from floodmark.api.looking import loaded, with_kinds
from floodmark.checkpoint.layout import OFFSETS, SOURCES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath, is_name
from floodmark.checkpoint.timeline import Batch, timeline
from floodmark.errors import MalformedFile, NoAnswer, WrongUse
from floodmark.screen import Shown
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import load, load_logs

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
    from floodmark.checkpoint.views.differences import Difference
    from floodmark.checkpoint.views.inspection import ScanEntry
    from floodmark.checkpoint.views.position import Position
    from floodmark.connectors.files.input_files import InputFile
    from floodmark.statestore.compare import StateDifference


def batches(
    path: str,
    last: int | None = None,
    storage: Storage | None = None,
    source_kinds: Mapping[str, str] | None = None,
) -> tuple[Batch, ...]:
    """List every batch that is still logged, oldest first.

    `source_kinds` names sources whose offsets look like another kind's: `{"0": "eventhubs"}`.
    """
    if last is not None and last < 1:
        raise WrongUse(f"--last {last}: the number must be at least 1", do="Give 1 or more.")
    with _uncollected():
        found = load_logs(open_files(str(path), storage))
        if found.dstreams is not None:
            from floodmark.checkpoint.dstreams.batches import dstream_batches

            return Shown(dstream_batches(_readable(found), last))
        return Shown(timeline(with_kinds(structured(found), source_kinds), last))


def _readable(found: Checkpoint) -> DStreamsCheckpoint:
    """Return the content of a DStreams folder, if Spark could recover from it."""
    assert found.dstreams is not None
    if found.dstreams.restart_file is None:
        first = next(iter(found.unreadable), None)
        raise MalformedFile(
            f"{found.path} is a DStreams checkpoint, and none of its files can be read",
            f"{first.path}: {first.reason}" if first else "",
            f"`floodmark inspect {shlex.quote(found.path)}"
            "` shows what its names tell; `floodmark doctor CP` says "
            "what to do.",
        )
    return found.dstreams


@contextmanager
def _uncollected() -> Iterator[None]:
    """Switch off garbage collection while tens of thousands of entries are made that all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def offsets(
    path: str,
    batch: int | None = None,
    at: datetime | str | None = None,
    storage: Storage | None = None,
    source_kinds: Mapping[str, str] | None = None,
    source: str | None = None,
) -> Position:
    """Return the stream's position after a batch, by default the last committed one.

    Its `starting_offsets` is what the source's starting option takes.
    """
    from floodmark.checkpoint.views.position import (
        choose_batch,
        of_source,
        position,
        with_starts,
    )

    files = open_files(str(path), storage)
    if at is not None:
        checkpoint = load_logs(files)
    elif batch is not None:
        checkpoint = load(files, batches=[batch])
    else:
        checkpoint = load(files)
        committed = checkpoint.committed_batch
        if committed is not None and committed not in checkpoint.offsets:
            # Two or more batches are planned after it, or its entry is gone.
            checkpoint = load(files, batches=[committed])
    checkpoint = with_kinds(structured(checkpoint), source_kinds)
    found = position(checkpoint, choose_batch(checkpoint, batch, milliseconds(at)))
    return with_starts(of_source(found, source), _starts(files, found))


def _starts(files: Files, found: Position) -> dict[str, bytes]:
    """Return `sources/<id>/0` of each source, if it exists."""
    ids = [one.id for one in found.sources if is_name(one.id)]
    paths = {one: RelativePath(f"{SOURCES}/{one}/0") for one in ids}
    read = files.read_many(paths.values())
    return {one: data for one in ids if isinstance(data := read[paths[one]], bytes)}


def files(
    path: str,
    batch: int | None = None,
    source: str | None = None,
    storage: Storage | None = None,
) -> tuple[InputFile, ...]:
    """Return which input files each batch took."""
    from floodmark.checkpoint.views.position import choose_batch, refuse_lost_offsets
    from floodmark.connectors.files.input_files import file_sources, input_files
    from floodmark.connectors.files.live import read_source_log

    place = open_files(str(path), storage)
    checkpoint = structured(load_logs(place))
    chosen = file_sources(checkpoint)
    if source is not None and source not in chosen:
        raise WrongUse(
            f"source {source!r} is not a file source of this checkpoint",
            f"File sources here: {', '.join(chosen) or 'none'}.",
            "`floodmark inspect CP` shows them all.",
        )
    refuse_lost_offsets(checkpoint)
    newest = f"{OFFSETS}/{checkpoint.latest_batch}"
    broken = next((item for item in checkpoint.unreadable if item.path == newest), None)
    if broken:
        raise MalformedFile(
            f"{path}/{newest} cannot be read, so its sources are not known",
            broken.reason,
            "`floodmark doctor CP` says what to do about it.",
        )
    if not chosen:
        kinds = ", ".join(f"{item.id} ({item.kind})" for item in checkpoint.sources)
        raise NoAnswer(
            f"{path}: no source of this stream reads files",
            f"Its sources are: {kinds or 'not known yet'}.",
            "`floodmark offsets CP` shows what it has read.",
        )
    checkpoint.refuse_not_given()  # else its files would look like those of an earlier batch
    if batch is not None:
        choose_batch(checkpoint, batch, None)  # this refuses a batch that is not logged
    seen = {
        name: read_source_log(place, checkpoint, name) for name in chosen if source in (None, name)
    }
    found = input_files(checkpoint, seen)
    return Shown(file for file in found if batch is None or file.batch == batch)


def diff(
    left: str,
    right: str | None = None,
    batches: tuple[int, int] | None = None,
    storage: Storage | None = None,
    source_kinds: Mapping[str, str] | None = None,
) -> tuple[Difference, ...]:
    """Compare two checkpoints, or two batches of one checkpoint.

    `source_kinds` names sources whose offsets look like another kind's, in both of them.
    """
    from floodmark.checkpoint.views.differences import diff_batches, diff_checkpoints
    from floodmark.checkpoint.views.position import choose_batch

    if (right is None) == (batches is None):
        raise _two_sides()
    if right is not None:
        opened = (open_files(str(place), storage) for place in (left, right))
        sides = (structured(loaded(files)) for files in opened)
        one, other = (with_kinds(side, source_kinds) for side in sides)
        return Shown(diff_checkpoints(one, other))
    assert batches is not None
    checkpoint = structured(load(open_files(str(left), storage), batches=batches))
    checkpoint = with_kinds(checkpoint, source_kinds)
    for batch in batches:
        choose_batch(checkpoint, batch, None)
    return Shown(diff_batches(checkpoint, *batches))


def _two_sides() -> WrongUse:
    return WrongUse(
        "give two checkpoints, or one checkpoint and two of its batches",
        do="floodmark diff CP OTHER, or floodmark diff CP --batches 5..7",
    )


def diff_state(
    left: str,
    right: str | None = None,
    batches: tuple[int, int] | None = None,
    storage: Storage | None = None,
) -> tuple[StateDifference, ...]:
    """Compare the state key by key; equal stores are left out."""
    require_state_extra()
    from floodmark.statestore.compare import Side, compare_state

    one = open_files(str(left), storage)
    checkpoint = structured(load(one))
    if right is not None:
        other = open_files(str(right), storage)
        sides = Side(one, checkpoint, None), Side(other, structured(load(other)), None)
        return Shown(compare_state(*sides))
    if batches is None:
        raise _two_sides()
    return Shown(compare_state(*(Side(one, checkpoint, batch) for batch in batches)))


def scan(
    roots: str | PathLike[str] | Iterable[str],
    storage: Storage | None = None,
    *,
    pass_over: Callable[[str, str], None] | None = None,
) -> Iterator[ScanEntry]:
    """Yield every checkpoint below the roots; a root may be a pipeline's YAML.

    `pass_over` is called for each link and each odd name, which are not searched, with its path and
    what it is.
    """
    from floodmark.api.pipelines import storage_of, with_flow
    from floodmark.storage.listing.scan import scan as scan_below

    for given in [str(roots)] if isinstance(roots, (str, PathLike)) else roots:
        root, pipeline = storage_of(str(given))
        place = open_files(root, storage)
        level = place.level()
        if not level.folders and not level.files:
            place.list()  # this reports a wrong root, if it is not only empty
        for entry in scan_below(place, _diagnosed, _below(place.root, pass_over)):
            yield with_flow(entry, storage, pipeline)


def _below(root: str, pass_over: Callable[[str, str], None] | None) -> Callable[[str, str], None]:
    """Return `pass_over` with whole paths in place of those below a root."""

    def tell(path: str, what: str) -> None:
        if pass_over is not None:
            pass_over(f"{root}/{path}", what)

    return tell


def _diagnosed(files: Files) -> ScanEntry:
    """Return a summary of a checkpoint, with the findings from its listing and newest entries."""
    from floodmark.checkpoint.views.inspection import scan_entry
    from floodmark.diagnosis.gather import glance
    from floodmark.rules.finding import is_bad
    from floodmark.rules.registry import examine

    evidence = glance(files)
    checkpoint = evidence.checkpoint
    if not checkpoint.complete:
        return scan_entry(checkpoint)  # most of its state was not listed, so rules would miss it
    found = [item for item in examine(evidence) if is_bad([item])]
    return scan_entry(checkpoint, tuple(f"{i.code} {i.rule}: {i.what}" for i in found))
