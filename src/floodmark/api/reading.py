"""The verbs that read: each gives data, and changes nothing."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import (
    Storage,
    milliseconds,
    parse_settings,
    require_state_extra,
    settings_of,
    structured,
)
from floodmark.checkpoint.layout import FLOW_CHECKPOINTS, NOTES, OFFSETS, SOURCES
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.relative_path import RelativePath, is_name
from floodmark.checkpoint.timeline import Batch, timeline
from floodmark.errors import MalformedFile, NoAnswer, NotACheckpoint, WrongUse
from floodmark.screen import Shown, fields_text
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import Entries, load, load_logs

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.checkpoint.differences import Difference
    from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
    from floodmark.checkpoint.inspection import Inspection, ScanEntry
    from floodmark.checkpoint.places.flow import Flow
    from floodmark.checkpoint.position import Position
    from floodmark.connectors.files.input_files import InputFile
    from floodmark.statestore.compare import StateDifference
    from floodmark.statestore.diff import StateDiff
    from floodmark.statestore.dstreams import DStreamState, Parts
    from floodmark.statestore.schemas import StoreSchema
    from floodmark.statestore.view import StateView

# Of `inspect` on an object store, whatever the number of operators and files.
_MOST_REQUESTS = 8


@dataclass(frozen=True)
class OpenCheckpoint(Checkpoint):
    """A Checkpoint that knows its place, so that its state can be asked for."""

    place: Files | None = field(default=None, repr=False, compare=False)

    __repr__ = fields_text

    def state(
        self,
        operator: int = 0,
        store: str | None = None,
        batch: int | None = None,
        schema: tuple[str, str] | None = None,
    ) -> StateView:
        """What an operator remembers after a batch: by default the last committed one."""
        assert self.place is not None
        return _open_state(self.place, self, operator, store, batch, schema)

    @property
    def batches(self) -> tuple[Batch, ...]:
        """Every batch that is still logged, oldest first."""
        return Shown(timeline(structured(self)))


def open(path: str, storage: Storage | None = None) -> OpenCheckpoint:
    """A checkpoint with every batch that is still logged."""
    place = open_files(str(path), storage)
    found = load(place, Entries.ALL)
    held = {each.name: getattr(found, each.name) for each in fields(found)}
    return OpenCheckpoint(**held, place=place)


def inspect(
    path: str,
    storage: Storage | None = None,
    source_kinds: Mapping[str, str] | None = None,
    trust: bool = False,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
) -> Inspection:
    """What a checkpoint is and where its stream stands; reads the newest entries only.

    `source_kinds` names sources whose offsets look like another kind's: `{"0": "eventhubs"}`.
    `trust` asks Spark, started with `conf`, which file of a DStreams folder it can take; that
    runs code of whoever wrote the folder.
    """
    from floodmark.checkpoint.inspection import inspection

    found = look(path, storage, source_kinds, trust, conf, master)
    return inspection(found, missing_state(found, storage), flow(path, storage))


def missing_state(found: Checkpoint, storage: Storage | None = None) -> tuple[str, ...]:
    """What the next start needs of the state and does not find: by names, and by the notes."""
    from floodmark.checkpoint import state_chain

    noted = any(file.path.startswith(f"{NOTES}/") for file in found.files)
    if found.state_operators or not noted:
        return state_chain.missing_state(found)
    from floodmark.diagnosis.gather import noted_starts
    from floodmark.rules.checkpoint.state_gone import check

    # The last one counts; the one before it, where the last cannot be read.
    evidence = noted_starts(open_files(found.path, storage), found, newest=2)
    return tuple(finding.what for finding in check(evidence))


def look(
    path: str,
    storage: Storage | None = None,
    source_kinds: Mapping[str, str] | None = None,
    trust: bool = False,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
) -> Checkpoint:
    """A checkpoint with its newest entries: enough for most questions, at a fixed cost.

    On an object store that is at most 8 requests; what was left out for it is in `not_read`.
    `source_kinds` names sources whose offsets look like another kind's: `{"0": "eventhubs"}`.
    `trust`, `conf` and `master` are as for `inspect`.
    """
    files = open_files(str(path), storage)
    found = _loaded(files, _MOST_REQUESTS)
    settings = _settings_to_ask(trust, conf, master)
    if trust and found.dstreams is not None:
        from floodmark.engine.dstreams.asking import ask_spark

        found = ask_spark(files, found, settings)
    return with_kinds(found, source_kinds)


def _loaded(files: Files, most_requests: int | None = None) -> Checkpoint:
    try:
        return load(files, most_requests=most_requests)
    except NotACheckpoint:
        if not _is_empty_flow(files):
            raise
        return Checkpoint(files.root, Kind.STRUCTURED_STREAMING, ())


def _settings_to_ask(
    trust: bool, conf: Mapping[str, Any] | str | Iterable[str], master: str | None
) -> dict[str, str]:
    """Spark is started for `trust` alone: settings without it would do nothing."""
    settings = parse_settings(settings_of(conf, master), "--conf")
    if settings and not trust:
        raise WrongUse(
            "--conf and --master are of the Spark that --trust asks",
            "Without --trust nothing starts Spark.",
            "Leave them out, or give --trust if you trust whoever wrote the folder.",
        )
    return settings


def _is_empty_flow(files: Files) -> bool:
    """Of a declarative pipeline that was refreshed: its flow begins here, with nothing."""
    return not files.list().files and flow(files.root) is not None


def flow(path: str, storage: Storage | None = None) -> Flow | None:
    """The flow of a declarative pipeline whose checkpoint this is; None for every other one."""
    if FLOW_CHECKPOINTS not in os.path.abspath(path):  # noqa: PTH100
        return None
    from floodmark.api.pipelines import flow_of

    return flow_of(str(path), storage)


def with_kinds(checkpoint: Checkpoint, said: Mapping[str, str] | None) -> Checkpoint:
    if not said:
        return checkpoint
    from floodmark.connectors.registry import said_kind

    ids = [source.id for source in checkpoint.sources]
    kinds = dict(checkpoint.said_kinds)
    for source, name in said.items():
        kind = said_kind(name)
        if kind is None:
            raise WrongUse(
                f"--source-kind {source}={name}: only kafka and eventhubs look alike",
                do="Name one of these two; every other kind is told by its offsets.",
            )
        if source not in ids:
            raise WrongUse(
                f"--source-kind {source}={name}: there is no source {source!r}",
                f"The checkpoint has sources: {', '.join(ids) or 'none'}.",
                "Name one of them; `floodmark inspect CP` shows them.",
            )
        kinds[source] = kind
    return replace(checkpoint, said_kinds=kinds)


def batches(
    path: str, last: int | None = None, storage: Storage | None = None
) -> tuple[Batch, ...]:
    """Every batch that is still logged, oldest first."""
    if last is not None and last < 1:
        raise WrongUse(
            f"--last {last}: at least one batch has to be asked for", do="Give 1 or more."
        )
    with _uncollected():
        found = load_logs(open_files(str(path), storage))
        if found.dstreams is not None:
            from floodmark.checkpoint.dstreams.batches import dstream_batches

            return Shown(dstream_batches(_readable(found), last))
        return Shown(timeline(structured(found), last))


def _readable(found: Checkpoint) -> DStreamsCheckpoint:
    """What a DStreams folder holds, where Spark could recover from it."""
    assert found.dstreams is not None
    if found.dstreams.restart_file is None:
        first = next(iter(found.unreadable), None)
        raise MalformedFile(
            f"{found.path} is a DStreams checkpoint, and none of its files can be read",
            f"{first.path}: {first.reason}" if first else "",
            f"`floodmark inspect {found.path}` shows what its names tell; `floodmark doctor` says "
            "what to do.",
        )
    return found.dstreams


@contextmanager
def _uncollected() -> Iterator[None]:
    """Tens of thousands of entries that all stay: looking for garbage among them finds none."""
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
    """Where the stream stood after a batch: by default the last committed one.

    Its `starting_offsets` is what the source's starting option takes.
    """
    from floodmark.checkpoint.position import (
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
            # Two or more batches are planned beyond it, or its entry is gone.
            checkpoint = load(files, batches=[committed])
    checkpoint = with_kinds(structured(checkpoint), source_kinds)
    found = position(checkpoint, choose_batch(checkpoint, batch, milliseconds(at)))
    return with_starts(of_source(found, source), _starts(files, found))


def _starts(files: Files, found: Position) -> dict[str, bytes]:
    """`sources/<id>/0` of each source, where it is there."""
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
    """Which input files each batch took."""
    from floodmark.checkpoint.position import choose_batch, offsets_lost
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
    if checkpoint.latest_batch is None and checkpoint.committed_batch is not None:
        raise offsets_lost(checkpoint)
    newest = f"{OFFSETS}/{checkpoint.latest_batch}"
    broken = next((item for item in checkpoint.unreadable if item.path == newest), None)
    if broken:
        raise MalformedFile(
            f"{path}/{newest} cannot be read, so its sources are not known",
            broken.reason,
            "`floodmark doctor` says what to do about it.",
        )
    if not chosen:
        kinds = ", ".join(f"{item.id} ({item.kind})" for item in checkpoint.sources)
        raise NoAnswer(
            f"{path}: no source of this stream reads files",
            f"Its sources are: {kinds or 'not known yet'}.",
            "`floodmark offsets CP` shows what it has read.",
        )
    if batch is not None:
        choose_batch(checkpoint, batch, None)  # a batch that is not logged is said to be so
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
) -> tuple[Difference, ...]:
    """What differs between two checkpoints, or between two batches of one."""
    from floodmark.checkpoint.differences import diff_batches, diff_checkpoints
    from floodmark.checkpoint.position import choose_batch

    if (right is None) == (batches is None):
        raise _two_sides()
    if right is not None:
        opened = (open_files(str(place), storage) for place in (left, right))
        one, other = (structured(_loaded(files)) for files in opened)
        return Shown(diff_checkpoints(one, other))
    assert batches is not None
    checkpoint = structured(load(open_files(str(left), storage), batches=batches))
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
    """What differs in the state, key by key; equal stores are left out."""
    require_state_extra()
    from floodmark.statestore.compare import Side, compare_state

    one = open_files(left, storage)
    checkpoint = structured(load(one))
    if right is not None:
        other = open_files(right, storage)
        sides = Side(one, checkpoint, None), Side(other, load(other), None)
        return Shown(compare_state(*sides))
    if batches is None:
        raise _two_sides()
    return Shown(compare_state(*(Side(one, checkpoint, batch) for batch in batches)))


def state(
    path: str,
    operator: int = 0,
    store: str | None = None,
    batch: int | None = None,
    schema: tuple[str, str] | None = None,
    storage: Storage | None = None,
    trust: bool = False,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
) -> StateView | DStreamState:
    """What an operator remembers after a batch; rows come when they are asked for.

    Of DStreams, `operator` is a stream and `batch` the time of one whose state was saved.
    `trust` unpickles what is not plain data, and reads records of Kryo through a Spark that is
    started with `conf`: both run code of whoever wrote the checkpoint.
    """
    settings = _settings_to_ask(trust, conf, master)
    place = open_files(str(path), storage)
    found = load(place)
    if found.dstreams is not None:
        require_state_extra()
        from floodmark.statestore.dstreams import open_dstream_state

        if store is not None or schema is not None:
            raise WrongUse(
                f"{path} is a DStreams checkpoint: its state has one store, and tells its types",
                do="Leave --store, --key-schema and --value-schema out.",
            )
        return open_dstream_state(
            place, found, operator, batch, trust, _parts_through_spark(settings)
        )
    return _open_state(place, structured(found), operator, store, batch, schema)


def _parts_through_spark(settings: Mapping[str, str]) -> Parts:
    def read(found: DStreamsCheckpoint, parts: Sequence[bytes]) -> list[bytes]:
        from floodmark.engine.dstreams.asking import parts_through_spark

        return parts_through_spark(settings)(found, parts)

    return read


# `floodmark.state` is a package of its own.
read_state = state


def schemas(path: str, storage: Storage | None = None) -> tuple[StoreSchema, ...]:
    """The types of what each operator, store and state variable remembers."""
    from floodmark.statestore.schemas import state_schemas

    place = open_files(str(path), storage)
    return Shown(state_schemas(place, structured(load(place))))


def state_changes(
    path: str,
    first: int,
    last: int,
    operator: int = 0,
    store: str | None = None,
    limit: int = 100,
    storage: Storage | None = None,
) -> StateDiff:
    """What changed in the state from the end of batch `first` to the end of batch `last`."""
    require_state_extra()
    from floodmark.statestore.diff import state_changes as changes

    place = open_files(str(path), storage)
    return changes(place, structured(load(place)), operator, store, first, last, limit)


def _open_state(
    place: Files,
    checkpoint: Checkpoint,
    operator: int,
    store: str | None,
    batch: int | None,
    schema: tuple[str, str] | None,
) -> StateView:
    require_state_extra()
    from floodmark.statestore.open import open_state

    return open_state(place, checkpoint, operator, store, batch, schema)


def scan(roots: str | Iterable[str], storage: Storage | None = None) -> Iterator[ScanEntry]:
    """Every checkpoint below the roots, as they are found; a root may be a pipeline's YAML."""
    from floodmark.api.pipelines import storage_of, with_flow
    from floodmark.storage.scan import scan as scan_below

    for given in [roots] if isinstance(roots, str) else roots:
        root, pipeline = storage_of(given)
        place = open_files(root, storage)
        level = place.level()
        if not level.folders and not level.files:
            place.list()  # says what is wrong with the root, if it is not just empty
        for entry in scan_below(place, _diagnosed):
            yield with_flow(entry, storage, pipeline)


def _diagnosed(files: Files) -> ScanEntry:
    """A checkpoint in short, with what the doctor sees at a glance."""
    from floodmark.checkpoint.inspection import scan_entry
    from floodmark.diagnosis.gather import glance
    from floodmark.rules.finding import is_bad
    from floodmark.rules.registry import examine

    evidence = glance(files)
    checkpoint = evidence.checkpoint
    if not checkpoint.complete:
        return scan_entry(checkpoint)  # most of its state was not listed: rules would miss it
    found = [item for item in examine(evidence) if is_bad([item])]
    return scan_entry(checkpoint, tuple(f"{i.code} {i.rule}: {i.what}" for i in found))
