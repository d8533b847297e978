"""Brings DStreams over to Structured Streaming: their state, and their input from there on."""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from floodmark.changes.apply import Carrying
from floodmark.changes.plan import Plan
from floodmark.changes.planners.bootstrap import FirstBatch
from floodmark.checkpoint.dstreams.folder import FILE_STREAM, DStreamsCheckpoint
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.text import compact_json
from floodmark.dstreams.input_files import InputFiles
from floodmark.dstreams.plain_values import named
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.code.drawing import Drawing
from floodmark.engine.dstreams.carrying import (
    OldState,
    old_state,
    require_readable,
    state_time,
    unread_inputs,
)
from floodmark.engine.pipelines.start_positions import KafkaStart, Start
from floodmark.engine.state.bootstrap import (
    Bootstrap,
    Bootstrapped,
    bootstrap_plan,
    kafka_beginnings,
)
from floodmark.errors import InUse, NoAnswer, NotACheckpoint, WouldLose, WrongUse
from floodmark.statestore.export import export_parquet
from floodmark.storage.files import Files
from floodmark.storage.load import load

_FILE_KINDS = ("csv", "json", "text", "parquet", "orc", "avro", "xml")
_QUIET_MS = 10_000


@dataclass(frozen=True)
class Leaving:
    app: str
    old: str
    operator: str = "0"
    """The new operator, or `operator/variable`, that takes the state."""
    stream: int | None = None
    """The old stream whose state it is; None where there is one."""
    with_file: str | None = None
    trust: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    script: ScriptOptions = field(default_factory=ScriptOptions)
    scratch: str | None = None


def leaving_plan(
    asked: Leaving, files: Files, new: str, carrying: Carrying, stack: contextlib.ExitStack
) -> Bootstrapped:
    """A plan for a first checkpoint of the new code: nothing of the old folder is changed."""
    checkpoint = load(files)
    found = _dstreams(checkpoint)
    require_stopped(checkpoint.path, found)
    as_of = state_time(checkpoint.path, found)
    number = _chosen(checkpoint.path, found, asked.stream)
    state = old_state(
        files,
        checkpoint,
        found.state_streams[number],
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
        return _first_batch(drawn, checkpoint.path, found, as_of)

    made = bootstrap_plan(bootstrap, new, carrying, stack, begin)
    return replace(made, plan=_as_leaving(made.plan, asked, found, as_of, state))


def _dstreams(checkpoint: Checkpoint) -> DStreamsCheckpoint:
    if checkpoint.kind is not Kind.DSTREAMS or checkpoint.dstreams is None:
        raise NotACheckpoint(
            f"{checkpoint.path} is no DStreams checkpoint",
            "It is of Structured Streaming already.",
            "`floodmark migrate` makes a checkpoint for changed code.",
        )
    require_readable(checkpoint.path, checkpoint.dstreams)
    return checkpoint.dstreams


def require_stopped(path: str, found: DStreamsCheckpoint) -> None:
    """Refuses while the application writes: its state would go on without us."""
    newest = max(file.time_ms for file in found.graph_files)
    quiet = max(3 * (found.batch_ms or 0), _QUIET_MS)
    age = int(time.time() * 1000) - newest
    if 0 <= age < quiet:
        left = math.ceil((quiet - age) / 1000)
        raise InUse(
            f"{path}: its newest file is {age / 1000:.0f} s old, and a batch takes "
            f"{(found.batch_ms or 0) / 1000:g} s: the application seems to run",
            "What it reads from now on would be read twice.",
            "Stop it (SIGTERM, so that it finishes its batches), and ask again "
            f"{quiet / 1000:g} s after its last file: in {left} s if it has stopped.",
        )


def _chosen(path: str, found: DStreamsCheckpoint, stream: int | None) -> int:
    states = found.state_streams
    if not states:
        raise NoAnswer(
            f"{path}: no stream of this application has saved a state",
            "There is nothing to bring over but the place in its input.",
            "Start the new query; `floodmark batches CP --json` says what was read.",
        )
    if stream is None and len(states) == 1:
        return 0
    if stream in states:
        return states.index(stream)
    said = ", ".join(f"{at} ({found.streams[at].kind})" for at in states)
    raise WrongUse(
        f"{path}: which state is to be brought over?",
        f"There are those of the streams {said}.",
        f"Choose one: --stream {states[0]}",
    )


def _write(pairs: Sequence[tuple[Any, Any]], path: str) -> None:
    import pyarrow as pa

    if not pairs:
        raise NoAnswer(
            "the old state has no key",
            "There is nothing to bring over but the place in the input.",
            "Start the new query on an empty checkpoint.",
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


def _first_batch(drawn: Drawing, path: str, found: DStreamsCheckpoint, as_of: int) -> FirstBatch:
    sources = list(zip(drawn.folders, drawn.outline.sources, strict=True))
    seen: dict[str, bytes] = {}
    inputs = list(unread_inputs(drawn.spark, path, found, as_of, kafka_too=True))
    for folder, source in sources:
        if source.kind not in _FILE_KINDS:
            continue
        place = _plain(source.options.get("path", ""))
        taken = next((one for one in inputs if _plain(one.directory) == place), None)
        if taken is not None:
            inputs.remove(taken)
            seen[folder] = _log(taken)
    _require_none_left(path, inputs)
    start = _kafka_start(found, as_of)
    kafka = {} if start is None else kafka_beginnings(sources, start)
    return FirstBatch(drawn.offsets, drawn.commit, kafka, (), seen)


def _require_none_left(path: str, inputs: Sequence[InputFiles]) -> None:
    for one in inputs:
        raise WouldLose(
            f"{path}: the old application reads {one.directory}, and no source of the new code "
            "does",
            f"{len(one.unread)} files there are not read yet.",
            "Read the same folder in the new code.",
        )


def _kafka_start(found: DStreamsCheckpoint, as_of: int) -> Start | None:
    offsets: dict[str, dict[str, int]] = {}
    for stream in found.streams:
        times = [time for time in stream.offsets if time <= as_of]
        for one in stream.offsets[max(times)] if times else ():
            offsets.setdefault(one.topic, {})[str(one.partition)] = one.until
        later = [time for time in stream.offsets if time > as_of]
        for one in stream.offsets[min(later)] if later and not times else ():
            offsets.setdefault(one.topic, {})[str(one.partition)] = one.from_
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
    found: DStreamsCheckpoint,
    as_of: int,
    state: OldState,
) -> Plan:
    keys, partitions = len(state.pairs), state.partitions
    options = {
        **plan.options,
        "old": asked.old,
        "with": asked.with_file,
        "trust": asked.trust,
        "state": {asked.operator: f"{keys} keys as of batch {as_of}"},
    }
    has_files = any(stream.kind == FILE_STREAM for stream in found.streams)
    notes = [
        f"The state is that of the batch of {as_of}: {keys:,} keys, {partitions} partitions. "
        "Input after that batch is read by the new query.",
    ]
    if has_files:
        notes.append("Files that the state holds count as read; the others come in batch 1.")
    return replace(
        plan,
        verb="leave-dstreams",
        title="A first checkpoint of Structured Streaming, with the state of DStreams",
        options=options,
        notes=(*notes, *plan.notes),
    )
