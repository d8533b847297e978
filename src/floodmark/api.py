"""One typed function per verb. The command line and the web only translate.

`storage` are the options that fsspec takes for the checkpoint's place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.inspection import Inspection, ScanEntry, inspection
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.timeline import Batch, timeline
from floodmark.errors import MalformedFile, NoAnswer, NotACheckpoint, WrongUse
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import Entries, load, load_logs

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.changes.origin import Origin
    from floodmark.changes.sources import Declared
    from floodmark.changes.verbs import Carrying, Change
    from floodmark.checkpoint.differences import Difference
    from floodmark.checkpoint.inputs import InputFile
    from floodmark.checkpoint.position import Position
    from floodmark.rules.finding import Finding, Rule
    from floodmark.storage.backup import Damage, Snapshot
    from floodmark.storage.state_compare import StateDifference
    from floodmark.storage.state_diff import StateDiff
    from floodmark.storage.state_view import StateView

Storage = Mapping[str, Any]


@dataclass(frozen=True)
class OpenCheckpoint(Checkpoint):
    """A Checkpoint that knows its place, so that its state can be asked for."""

    place: Files | None = field(default=None, repr=False, compare=False)

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


def open(path: str, storage: Storage | None = None) -> OpenCheckpoint:
    """A checkpoint with every batch that is still logged."""
    place = open_files(str(path), storage)
    found = load(place, Entries.ALL)
    held = {each.name: getattr(found, each.name) for each in fields(found)}
    return OpenCheckpoint(**held, place=place)


def inspect(path: str, storage: Storage | None = None) -> Inspection:
    """What a checkpoint is and where its stream stands; reads the newest entries only."""
    return inspection(look(path, storage))


def look(path: str, storage: Storage | None = None) -> Checkpoint:
    """A checkpoint with its newest entries: enough for most questions, at a fixed cost."""
    return load(open_files(str(path), storage))


def batches(
    path: str, last: int | None = None, storage: Storage | None = None
) -> tuple[Batch, ...]:
    """Every batch that is still logged, oldest first."""
    if last is not None and last < 1:
        raise WrongUse(f"--last {last}: at least one batch has to be asked for")
    return timeline(_structured(load_logs(open_files(str(path), storage))), last)


def offsets(
    path: str,
    batch: int | None = None,
    at: datetime | str | None = None,
    storage: Storage | None = None,
) -> Position:
    """Where the stream stood after a batch: by default the last committed one."""
    from floodmark.checkpoint.position import choose_batch, position

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
    _structured(checkpoint)
    return position(checkpoint, choose_batch(checkpoint, batch, _milliseconds(at)))


def files(
    path: str,
    batch: int | None = None,
    source: str | None = None,
    storage: Storage | None = None,
) -> tuple[InputFile, ...]:
    """Which input files each batch took."""
    from floodmark.checkpoint.inputs import file_sources, input_files
    from floodmark.checkpoint.position import choose_batch
    from floodmark.storage.inputs import read_source_log

    place = open_files(str(path), storage)
    checkpoint = _structured(load_logs(place))
    chosen = file_sources(checkpoint)
    if source is not None and source not in chosen:
        raise WrongUse(
            f"source {source!r} is not a file source of this checkpoint",
            f"File sources here: {', '.join(chosen) or 'none'}.",
        )
    newest = f"offsets/{checkpoint.latest_batch}"
    broken = next((item for item in checkpoint.unreadable if item.path == newest), None)
    if broken:
        raise MalformedFile(
            f"{path}/{newest} cannot be read, so its sources are not known",
            broken.reason,
            "`floodmark doctor` says what to do about it.",
        )
    if not chosen:
        kinds = ", ".join(f"{item.id} ({item.kind.value})" for item in checkpoint.sources)
        raise NoAnswer(
            f"{path}: no source of this stream reads files",
            f"Its sources are: {kinds or 'not known yet'}.",
        )
    if batch is not None:
        choose_batch(checkpoint, batch, None)  # a batch that is not logged is said to be so
    seen = {
        name: read_source_log(place, checkpoint, name) for name in chosen if source in (None, name)
    }
    found = input_files(checkpoint, seen)
    return tuple(file for file in found if batch is None or file.batch == batch)


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
        raise WrongUse("give two checkpoints, or one checkpoint and two of its batches")
    if right is not None:
        return diff_checkpoints(look(left, storage), look(right, storage))
    assert batches is not None
    checkpoint = _structured(load(open_files(str(left), storage), batches=batches))
    for batch in batches:
        choose_batch(checkpoint, batch, None)
    return diff_batches(checkpoint, *batches)


def diff_state(
    left: str,
    right: str | None = None,
    batches: tuple[int, int] | None = None,
    storage: Storage | None = None,
) -> tuple[StateDifference, ...]:
    """What differs in the state, key by key; equal stores are left out."""
    _require_state_extra()
    from floodmark.storage.state_compare import Side, compare_state

    one = open_files(left, storage)
    checkpoint = _structured(load(one))
    if right is not None:
        other = open_files(right, storage)
        return compare_state(Side(one, checkpoint, None), Side(other, load(other), None))
    if batches is None:
        raise WrongUse("give two checkpoints, or one checkpoint and two of its batches")
    return compare_state(*(Side(one, checkpoint, batch) for batch in batches))


def state(
    path: str,
    operator: int = 0,
    store: str | None = None,
    batch: int | None = None,
    schema: tuple[str, str] | None = None,
    storage: Storage | None = None,
) -> StateView:
    """What an operator remembers after a batch; rows come when they are asked for."""
    place = open_files(str(path), storage)
    return _open_state(place, _structured(load(place)), operator, store, batch, schema)


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
    _require_state_extra()
    from floodmark.storage.state_diff import state_changes as changes

    place = open_files(str(path), storage)
    return changes(place, _structured(load(place)), operator, store, first, last, limit)


def _open_state(
    place: Files,
    checkpoint: Checkpoint,
    operator: int,
    store: str | None,
    batch: int | None,
    schema: tuple[str, str] | None,
) -> StateView:
    _require_state_extra()
    from floodmark.storage.state import open_state

    return open_state(place, checkpoint, operator, store, batch, schema)


def missing_for_state() -> list[str]:
    """Which packages of the `state` extra are not installed."""
    from importlib.util import find_spec

    return [
        name for name in ("pyarrow", "numpy", "lz4", "rocksdict", "xxhash") if not find_spec(name)
    ]


def _require_state_extra() -> None:
    missing = missing_for_state()
    if missing:
        raise WrongUse(
            f"looking inside the state needs {', '.join(missing)}",
            "They are heavy, so the base install leaves them out.",
            'Install them with: pip install "floodmark[state]"',
        )


def scan(roots: Iterable[str], storage: Storage | None = None) -> Iterator[ScanEntry]:
    """Every checkpoint below the roots, as they are found."""
    from floodmark.storage.scan import scan as scan_below

    for root in roots:
        place = open_files(str(root), storage)
        level = place.level()
        if not level.folders and not level.files:
            place.list()  # says what is wrong with the root, if it is not just empty
        yield from scan_below(place)


def upgrade(
    path: str,
    new: str,
    *,
    app: str | None = None,
    from_batch: int | None = None,
    new_identity: bool = False,
    restart_numbering: bool = False,
    drop_in_flight: bool = False,
    without_state: bool = False,
    map_topic: Iterable[str] = (),
    kafka: str | None = None,
    by_time: bool = False,
    carrying: Carrying | None = None,
) -> Change:
    """A new checkpoint that begins exactly after the last committed batch."""
    from floodmark.changes import verbs
    from floodmark.changes.course import Wish
    from floodmark.changes.topics import parse_topics

    wish = Wish(
        from_batch,
        new_identity,
        restart_numbering,
        drop_in_flight,
        without_state,
        parse_topics(tuple(map_topic)),
        kafka,
        by_time,
    )
    check = _app_check(app, wish.map_topic) if app is not None else None
    return verbs.upgrade(str(path), str(new), wish, carrying or verbs.Carrying(), check)


def _app_check(
    app: str, map_topic: tuple[tuple[str, str], ...]
) -> Callable[[Origin], Sequence[str]]:
    from floodmark.changes.sources import check_sources

    return lambda origin: check_sources(
        origin.checkpoint, _declared_sources(app), app, dict(map_topic)
    )


def _declared_sources(app: str) -> list[Declared]:
    """The sources of an application's one pipeline, as Spark's analyser sees them."""
    from floodmark.changes.sources import Declared
    from floodmark.engine.application import load_application
    from floodmark.engine.query import read_query, require_writer
    from floodmark.engine.session import SessionWish, build_session, new_log, running_session
    from floodmark.engine.starting import Start

    pipelines = load_application(app).pipelines
    if len(pipelines) != 1:
        names = ", ".join(pipeline.name for pipeline in pipelines)
        raise WrongUse(f"{app} has {len(pipelines)} pipelines", do=f"Name one of them: {names}.")
    pipeline = pipelines[0]
    running = running_session()
    wish = SessionWish("floodmark", pipeline.needs, pipeline.conf, new_log("floodmark"), True)
    spark = running or build_session(wish)
    try:
        writer = pipeline(spark, Start(), **pipeline.settle({}))
        require_writer(writer, f"pipeline {pipeline.name}")
        return [
            Declared(source.kind, tuple(source.options.get("subscribe", "").split(",")))
            if source.options.get("subscribe")
            else Declared(source.kind)
            for source in read_query(writer).sources
        ]
    finally:
        if running is None:
            spark.stop()


def rewind(
    path: str,
    *,
    to_batch: int | None = None,
    to_time: datetime | str | None = None,
    to_offsets: str | None = None,
    keep_identity: bool = False,
    sink: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """The same checkpoint, back at the end of an earlier batch, or at given offsets."""
    from floodmark.changes import verbs

    return verbs.rewind(
        str(path),
        carrying or verbs.Carrying(),
        to_batch,
        _milliseconds(to_time),
        to_offsets,
        keep_identity,
        sink,
    )


def copy(
    path: str,
    dest: str,
    *,
    rehome: Iterable[str] = (),
    new_identity: bool = False,
    carrying: Carrying | None = None,
) -> Change:
    """A copy elsewhere, with the absolute paths inside made right."""
    from floodmark.changes import verbs

    return verbs.copy(
        str(path), str(dest), tuple(rehome), new_identity, carrying or verbs.Carrying()
    )


def backup(
    path: str,
    repository: str,
    *,
    keep_last: int | None = None,
    keep_daily: int | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A snapshot in a repository that holds every content once; a query may go on running."""
    from floodmark.changes import verbs
    from floodmark.changes.backing import Retention

    retention = Retention(keep_last, keep_daily)
    return verbs.back_up(str(path), str(repository), retention, carrying or verbs.Carrying())[0]


def check_backups(
    repository: str, storage: Storage | None = None
) -> tuple[int, tuple[Damage, ...]]:
    """How many snapshots a repository has, and which content of them is missing or damaged."""
    from floodmark.changes import verbs

    return verbs.check_repository(str(repository), storage)


def snapshots(repository: str, storage: Storage | None = None) -> tuple[Snapshot, ...]:
    """The snapshots of a repository, oldest first."""
    from floodmark.changes import verbs

    return verbs.list_snapshots(str(repository), storage)


def restore(
    repository: str,
    path: str,
    *,
    snapshot: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """A checkpoint as a snapshot has it, at the same or another place."""
    from floodmark.changes import verbs

    return verbs.restore(str(repository), str(path), snapshot, carrying or verbs.Carrying())


def apply(plan: str, *, carrying: Carrying | None = None) -> Change:
    """Carries out a saved plan, if everything is still as it was."""
    from floodmark.changes import verbs

    return verbs.apply_saved(str(plan), carrying or verbs.Carrying(execute=True))


def undo(path: str, *, carrying: Carrying | None = None) -> Change:
    """Takes back the last change of a checkpoint, whole or half done."""
    from floodmark.changes import verbs

    return verbs.take_back(str(path), carrying or verbs.Carrying())


def forget(path: str, *, carrying: Carrying | None = None) -> Change:
    """Removes what changes have kept."""
    from floodmark.changes import verbs

    return verbs.forget_kept(str(path), carrying or verbs.Carrying())


def doctor(
    path: str, read_data: float | None = None, storage: Storage | None = None
) -> tuple[Finding, ...]:
    """What is wrong with a checkpoint. `read_data`: how much of the state to read, 1.0 for all."""
    from floodmark.rules.registry import examine
    from floodmark.storage.evidence import gather

    if read_data is not None:
        _require_state_extra()
    return examine(gather(open_files(str(path), storage), read_data))


def lint(paths: Iterable[str]) -> tuple[Finding, ...]:
    """What will hurt in streaming code: Python files, notebooks and folders of them."""
    from floodmark.rules.code.reading import not_python, read_code
    from floodmark.rules.linting import judge
    from floodmark.storage.evidence_code import read_sources

    return judge(
        read_code(path, text) if isinstance(text, str) else not_python(path, text.what)
        for path, text in read_sources(str(path) for path in paths)
    )


def explain(rule: str | None = None) -> tuple[Rule, ...]:
    """The story of a rule, by code or name; of all of them without one."""
    from floodmark.rules.registry import all_rules, find_rule

    found = all_rules() if rule is None else (find_rule(rule),)
    return tuple(known.rule for known in found)


def _structured(checkpoint: Checkpoint) -> Checkpoint:
    if checkpoint.kind is Kind.DSTREAMS:
        raise NotACheckpoint(
            f"{checkpoint.path} is a DStreams checkpoint: it has no log of batches",
            "DStreams saves the whole application as one Java-serialised object.",
            "`floodmark inspect` shows what can be seen of it.",
        )
    return checkpoint


def _milliseconds(at: datetime | str | None) -> int | None:
    if at is None:
        return None
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at.replace("Z", "+00:00"))
        except ValueError:
            raise WrongUse(
                f"{at!r} is not a time",
                do="Write it as 2026-11-15T10:00:00Z; without a zone it is your local time.",
            ) from None
    try:
        return round(at.timestamp() * 1000)  # without a zone: the local one
    except (ValueError, OverflowError, OSError):
        # Local time cannot be told near the calendar's ends, where the zone does not matter.
        return int(at.replace(tzinfo=timezone.utc).timestamp() * 1000)
