"""Brings DStreams to Structured Streaming: their state, and their input from there on."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from floodmark.changes.apply import Carrying
from floodmark.changes.plan import Plan
from floodmark.changes.planners.bootstrap import FirstBatch
from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.text import compact_json
from floodmark.connectors.files.input_folder import is_hidden, oldest_taken_ms, passes_filter
from floodmark.dstreams.input_files import InputFiles
from floodmark.dstreams.plain_values import named
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.code.drawing import Drawing
from floodmark.engine.dstreams.quiet import require_stopped
from floodmark.engine.dstreams.takeover import (
    OldState,
    old_state,
    require_readable,
    set_aside,
    state_time,
    told_files,
    unread_inputs,
)
from floodmark.engine.pipelines.start_positions import KafkaStart, Start
from floodmark.engine.state.bootstrap import (
    Bootstrap,
    Bootstrapped,
    bootstrap_plan,
    kafka_beginnings,
)
from floodmark.errors import NoAnswer, NotACheckpoint, WouldLose, WrongUse
from floodmark.statestore.export import export_parquet
from floodmark.storage.files import Files
from floodmark.storage.load import load

_FILE_KINDS = ("csv", "json", "text", "parquet", "orc", "avro", "xml")


@dataclass(frozen=True)
class Leaving:
    app: str
    old: str
    operator: str = "0"
    """The new operator, or `operator/variable`, that gets the state."""
    stream: int | None = None
    """The old stream with the state; None where only one has state."""
    with_file: str | None = None
    trust: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    script: ScriptOptions = field(default_factory=ScriptOptions)
    scratch: str | None = None


def leaving_plan(
    asked: Leaving, files: Files, new: str, carrying: Carrying, stack: contextlib.ExitStack
) -> Bootstrapped:
    """Plan a first checkpoint of the new code; the old folder does not change."""
    checkpoint = load(files)
    found = _dstreams(checkpoint)
    require_stopped(files, checkpoint)
    chosen = _chosen(checkpoint.path, found, asked.stream)
    # Only for this state: other states may be saved at other times, and stay behind.
    as_of = state_time(checkpoint.path, found, (chosen,))
    state = old_state(
        files,
        checkpoint,
        chosen,
        as_of,
        asked.trust,
        asked.with_file,
        asked.conf,
    )
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="floodmark-leaving-"))
    path = str(Path(folder) / "state.parquet")
    _write(state.pairs, path)
    bootstrap = Bootstrap(
        asked.app,
        {asked.operator: path},
        None,
        asked.settings,
        asked.scratch,
        asked.conf,
        asked.script,
        by_place=frozenset(("key", "value")) - state.without_order,
    )

    def begin(drawn: Drawing) -> FirstBatch:
        return _first_batch(drawn, checkpoint.path, found, chosen, as_of)

    made = bootstrap_plan(bootstrap, new, carrying, stack, begin)
    return replace(made, plan=_as_leaving(made.plan, asked, checkpoint, chosen, as_of, state))


def _dstreams(checkpoint: Checkpoint) -> DStreamsCheckpoint:
    if checkpoint.kind is not Kind.DSTREAMS or checkpoint.dstreams is None:
        raise NotACheckpoint(
            f"{checkpoint.path} is not a DStreams checkpoint",
            "It already belongs to Structured Streaming.",
            "`floodmark migrate` makes a checkpoint for changed code.",
        )
    require_readable(checkpoint.path, checkpoint.dstreams)
    return checkpoint.dstreams


def _chosen(path: str, found: DStreamsCheckpoint, stream: int | None) -> int:
    states, unsaved = found.lasting_streams, found.unsaved_streams
    if stream in found.state_streams and stream not in states:
        raise NoAnswer(
            f"{path}: stream {stream} ({found.streams[stream].kind}) has no lasting state",
            "It only saves the rows of a window or of one batch.",
            "The states of updateStateByKey and mapWithState are: "
            f"{found.named_streams(states) or 'none'}.",
        )
    if not states:
        raise NoAnswer(
            f"{path}: no stream of this application has saved a state",
            "Only the position in its input could be carried over.",
            "Start the new query; `floodmark batches CP --json` says what was read.",
        )
    if stream is None and len(states) == 1 and not unsaved:
        return states[0]
    if stream in states:
        return stream
    if stream in unsaved:
        raise NoAnswer(
            f"{path}: the state of stream {stream} is not saved yet",
            f"It is a {found.streams[stream].kind} whose first save is still to come.",
            "Run the old application until it has saved it, stop it, and try again.",
        )
    raise WrongUse(
        f"{path}: several streams keep a state",
        f"These streams are {found.named_streams(sorted((*states, *unsaved)))}.",
        f"Choose one: --stream {states[0]}",
    )


def _write(pairs: Sequence[tuple[Any, Any]], path: str) -> None:
    import pyarrow as pa

    if not pairs:
        raise NoAnswer(
            "the saved state has no key, so the new query's state cannot be made from it",
            "A new query on an empty checkpoint would read the whole input, old files included.",
            "Run the old application until it has saved a key, stop it, and try again.",
        )
    try:
        table = pa.table(
            {
                "key": pa.array([named(key, "key") for key, _ in pairs]),
                "value": pa.array([named(value, "value") for _, value in pairs]),
            }
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise WrongUse(
            "the keys or values of the old state are of different types",
            str(error).splitlines()[0],
            "Give a function that makes them one type: --with FILE.py",
        ) from None
    export_parquet(table.to_batches(), table.schema, path)


def _first_batch(
    drawn: Drawing, path: str, found: DStreamsCheckpoint, stream: int, as_of: int
) -> FirstBatch:
    sources = list(zip(drawn.folders, drawn.outline.sources, strict=True))
    seen: dict[str, bytes] = {}
    notes: list[str] = []
    inputs = list(unread_inputs(drawn.spark, path, found, as_of, stream))
    for folder, source in sources:
        if source.kind not in _FILE_KINDS:
            continue
        place = _plain(source.options.get("path", ""))
        taken = next((one for one in inputs if _plain(one.directory) == place), None)
        if taken is not None:
            inputs.remove(taken)
            _require_taken(path, taken, source.options)
            seen[folder] = _log(taken)
            notes.append(told_files(taken))
    _require_none_left(path, inputs)
    start = _kafka_start(path, found, stream, as_of)
    kafka = {} if start is None else kafka_beginnings(sources, start)
    return FirstBatch(drawn.offsets, drawn.commit, kafka, tuple(notes), seen)


def _require_none_left(path: str, inputs: Sequence[InputFiles]) -> None:
    for one in inputs:
        raise WouldLose(
            f"{path}: the old application reads {one.directory}, but no source of the new code "
            "does",
            f"{len(one.unread)} files there are not read yet.",
            "Read the same folder in the new code.",
        )


def _require_taken(path: str, taken: InputFiles, options: Mapping[str, str]) -> None:
    """Refuse if Spark's file source would ignore files that are not read yet."""
    times = dict(taken.times)
    oldest = oldest_taken_ms(max(times.values(), default=None), options)
    for name in taken.unread:
        last = name.rpartition("/")[2]
        if is_hidden(last):
            why = "The source ignores names that begin with an underscore; DStreams read them."
            do = "Rename the file, or let the old application read it."
        elif not passes_filter(last, options):
            why = f"Its pathGlobFilter is {options['pathglobfilter']}."
            do = "Leave the filter out, or let the old application read the file."
        elif oldest is not None and times[name] < oldest:
            why = "It is older than the newest file by more than maxFileAge (7 days unless set)."
            do = 'Give the source .option("maxFileAge", "90d"), or a longer time if needed.'
        else:
            continue
        raise WouldLose(
            f"{path}: {name} is not read yet, and the new code's file source would ignore it",
            why,
            do,
        )


def _kafka_start(path: str, found: DStreamsCheckpoint, state: int, as_of: int) -> Start | None:
    offsets: dict[str, dict[str, int]] = {}
    for stream in (found.streams[at] for at in sorted(found.inputs_of(state))):
        if not stream.offsets:
            continue
        after = as_of + (found.batch_ms or 0)
        if as_of in stream.offsets:
            ends = {(one.topic, one.partition): one.until for one in stream.offsets[as_of]}
        elif after in stream.offsets:
            ends = {(one.topic, one.partition): one.from_ for one in stream.offsets[after]}
        else:
            raise WouldLose(
                f"{path}: the Kafka stream has forgotten what it read in the batch of {as_of}, "
                "the newest batch with a whole state",
                f"It remembers its ranges from the batch of {min(stream.offsets)} on.",
                "Run the old application until it has saved a newer state, stop it, and try again.",
            )
        for (topic, partition), offset in ends.items():
            offsets.setdefault(topic, {})[str(partition)] = offset
    return Start((KafkaStart(offsets),), "the DStreams checkpoint") if offsets else None


def _log(taken: InputFiles) -> bytes:
    from urllib.parse import quote

    def url(name: str) -> str:
        plain = name[len("file:") :] if name.startswith("file:") else name
        if "://" in plain:
            return quote(plain, safe="/:@!$&'()*+,;=-._~")
        return "file://" + quote("/" + plain.lstrip("/"), safe="/:@!$&'()*+,;=-._~")

    times = dict(taken.times)
    entries = ({"path": url(one), "timestamp": times[one], "batchId": 0} for one in taken.read)
    return "\n".join(["v1", *(compact_json(entry) for entry in entries)]).encode()


def _plain(directory: str) -> str:
    return "/" + directory.removeprefix("file:").strip("/")


def _as_leaving(
    plan: Plan,
    asked: Leaving,
    checkpoint: Checkpoint,
    stream: int,
    as_of: int,
    state: OldState,
) -> Plan:
    found = checkpoint.dstreams
    assert found is not None
    keys, partitions = len(state.pairs), state.partitions
    options = {
        **plan.options,
        "old": asked.old,
        "with": asked.with_file,
        "trust": asked.trust,
        "state": {asked.operator: f"{keys} keys as of batch {as_of}"},
    }
    left = [at for at in sorted((*found.lasting_streams, *found.unsaved_streams)) if at != stream]
    notes = [
        f"The state is that of the batch of {as_of}: {keys:,} keys, {partitions} partitions. "
        "The new query reads the input after that batch.",
        *(f"{words}." for words in set_aside(checkpoint, (stream,), as_of)),
    ]
    if left:
        notes.append(
            f"Other states stay behind: stream {found.named_streams(left)}. "
            "Bring each one to a query of its own."
        )
    return replace(
        plan,
        verb="leave-dstreams",
        title="A first checkpoint of Structured Streaming, with the state of DStreams",
        options=options,
        notes=(*notes, *plan.notes),
    )
