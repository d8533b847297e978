"""What a new context takes over from an old folder: the newest whole state, and unread input."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.dstreams.folder import (
    FILE_STREAM,
    PYTHON,
    DStream,
    DStreamsCheckpoint,
    SavedRdd,
)
from floodmark.checkpoint.model import Checkpoint
from floodmark.dstreams.input_files import InputFiles, input_files
from floodmark.dstreams.plain_values import Budget, has_names_alone, plain_value
from floodmark.engine.dstreams.asking import parts_through_spark
from floodmark.engine.dstreams.founding import CarriedOver
from floodmark.engine.dstreams.input_listing import listed
from floodmark.errors import CannotRead, WouldLose, WrongUse
from floodmark.statestore.dstreams import open_dstream_state
from floodmark.storage.files import Files

_SOURCES = "InputDStream"
Reshape = Callable[[int, Any, Any], Any]


def carried_over(
    spark: Any, files: Files, checkpoint: Checkpoint, trust: bool, reshaping: str | None
) -> CarriedOver:
    """Everything that the new context needs; refuses where records would be lost."""
    found = checkpoint.dstreams
    assert found is not None
    require_readable(checkpoint.path, found)
    require_all_saved(checkpoint.path, found)
    require_no_window(checkpoint.path, found)
    as_of = state_time(checkpoint.path, found, found.lasting_streams)
    states = [
        old_state(files, checkpoint, stream, as_of, trust, reshaping)
        for stream in found.lasting_streams
    ]
    return CarriedOver(
        as_of,
        tuple((one.partitions, one.pairs) for one in states),
        unread_inputs(spark, checkpoint.path, found, as_of),
        set_aside(checkpoint, found.lasting_streams, as_of),
    )


def require_readable(path: str, found: DStreamsCheckpoint) -> None:
    if found.restart_file is None:
        raise CannotRead(
            f"{path}: none of its checkpoint files can be read",
            "Neither Spark nor floodmark can go on from there.",
            f"`floodmark doctor {shlex.quote(path)}"
            "` says what is damaged; restore a file from a backup.",
        )


def require_all_saved(path: str, found: DStreamsCheckpoint) -> None:
    """A state that is not saved would begin empty, or be given what another stream has saved."""
    unsaved = found.unsaved_streams
    if unsaved:
        interval = max(found.streams[at].checkpoint_interval_ms or 0 for at in unsaved)
        raise WouldLose(
            f"{path}: a state is not saved yet: stream {found.named_streams(unsaved)}",
            "States are handed over in their order: the new code would take another stream's for "
            "it, or begin it empty.",
            f"Run the old code until it has saved it (every {interval / 1000:g} s), stop it, and "
            "try again.",
        )


def require_no_window(path: str, found: DStreamsCheckpoint) -> None:
    """A window takes away what it has added: begun anew, it would take away what it never had."""
    windows = [at for at, one in enumerate(found.streams) if one.kind.endswith("WindowedDStream")]
    saving = [at for at in windows if found.streams[at].checkpoint_interval_ms is not None]
    if saving:
        raise WouldLose(
            f"{path}: a window cannot be carried over: stream {found.named_streams(saving)}",
            "What it has added is taken away again when its time is over, by the batches that it "
            "was of; a new context has none of these.",
            "Keep the rows of a window by updateStateByKey, or begin anew in another folder when "
            "the window may begin empty.",
        )


def require_whole_state(path: str, found: DStreamsCheckpoint, application: str) -> None:
    """Spark takes the newest file that it can read, and fails where a saved RDD of it is gone."""
    for _, location in found.gone_rdds:
        raise CannotRead(
            f"{path}: {found.restart_file} names a state that is gone: {location}",
            "Spark takes this file, and does not start without that state.",
            "Begin anew with the newest whole state and the input that it does not hold: "
            f"floodmark run {shlex.quote(application)} --fresh-with-state",
        )


def set_aside(
    checkpoint: Checkpoint, streams: Iterable[int] = (), as_of: int | None = None
) -> tuple[str, ...]:
    """What is newer and not taken, in sentences: files that cannot be read, torn states."""
    found = checkpoint.dstreams
    assert found is not None
    reasons = {item.path: item.reason.rstrip(".") for item in checkpoint.unreadable}
    said = []
    for file in reversed(found.graph_files):
        if file.path == found.restart_file:
            break
        if file.path in reasons:
            said.append(
                f"{file.path} cannot be read ({reasons[file.path]}): {found.restart_file} is taken "
                "in its place"
            )
    for at in streams if as_of is not None else ():
        whole = {rdd.batch_time_ms for rdd in found.rdds if rdd.stream == at and is_whole(rdd)}
        said += [
            f"stream {at}: the state after the batch of {time} is not here as a whole: that of "
            f"{as_of} is taken"
            for time in found.streams[at].rdds
            if time > (as_of or 0) and time not in whole
        ]
    return tuple(said)


def is_whole(rdd: SavedRdd) -> bool:
    return rdd.missing is None and rdd.partitions > 0


def state_time(path: str, found: DStreamsCheckpoint, streams: Sequence[int]) -> int:
    """The newest batch of which these states are saved as a whole; without state, the last one."""
    if not streams:
        pending = found.pending_times or ()
        done = found.checkpoint_time_ms or 0
        return min(done, min(pending) - 1) if pending else done
    whole = [
        {rdd.batch_time_ms for rdd in found.rdds if rdd.stream == stream and is_whole(rdd)}
        for stream in streams
    ]
    common = {time for time in set.intersection(*whole) if time is not None}
    if not common:
        raise CannotRead(
            f"{path}: there is no batch of which every state is saved",
            "The folders of some saved RDDs are gone, or streams save at different times.",
            f"`floodmark inspect {shlex.quote(path)}` lists them. "
            "`floodmark leave-dstreams --stream N` takes "
            f"one state alone, as of its own newest batch. N is one of: "
            f"{found.named_streams(streams)}.",
        )
    return max(common)


@dataclass(frozen=True)
class OldState:
    """The keys and values of one stream, through the user's function where there is one."""

    partitions: int
    pairs: list[tuple[Any, Any]]
    without_order: frozenset[str] = frozenset()
    """Of `key` and `value`, those that are objects of a class: their fields have names alone."""


def old_state(
    files: Files,
    checkpoint: Checkpoint,
    stream: int,
    as_of: int,
    trust: bool,
    reshaping: str | None,
    conf: Mapping[str, str] | None = None,
) -> OldState:
    """One state as of a batch. `conf` is of the Spark that reads what only Spark can read."""
    through_spark = parts_through_spark(conf or {})
    view = open_dstream_state(files, checkpoint, stream, as_of, trust, through_spark)
    inside = checkpoint.dstreams
    assert inside is not None
    reshape = _reshape(reshaping) if reshaping else None
    is_python = inside.language == PYTHON
    number = inside.lasting_streams.index(stream)
    pairs = []
    without_order: set[str] = set()
    for _, key, value in view.pairs():
        pair: Any = (key, value) if is_python else (_plain(key), _plain(value))
        if reshape is None:
            without_order |= {
                name
                for name, one in (("key", key), ("value", value))
                if name not in without_order and has_names_alone(one)
            }
        else:
            pair = reshape(number, *pair)
            if pair is None:
                continue
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise WrongUse(
                    f"the function for the state gives {type(pair).__name__}",
                    do="Return the new key and value: return key, value. None drops the key.",
                )
        pairs.append(pair)
    return OldState(len(view.partitions), pairs, frozenset(without_order))


def _plain(value: Any) -> Any:
    return plain_value(value, Budget())


def _reshape(path: str) -> Reshape:
    """`def state(key, value): return key, value`, or `state_1` for the second state."""
    spec = importlib.util.spec_from_file_location("floodmark_reshaping", path)
    if spec is None or spec.loader is None:
        raise WrongUse(f"{path}: not a Python file", do="Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["floodmark_reshaping"] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise WrongUse(f"{path} fails on import: {type(error).__name__}: {error}") from error
    functions = {name: one for name, one in vars(module).items() if callable(one)}

    def reshape(number: int, key: Any, value: Any) -> Any:
        function = functions.get(f"state_{number}") or functions.get("state")
        return (key, value) if function is None else function(key, value)

    if not any(name == "state" or name.startswith("state_") for name in functions):
        raise WrongUse(
            f"{path}: no function named state in it",
            "It turns each key and value of the old state into those of the new.",
            "Write def state(key, value): return key, value",
        )
    return reshape


def unread_inputs(
    spark: Any,
    path: str,
    found: DStreamsCheckpoint,
    as_of: int,
    behind: int | None = None,
) -> tuple[InputFiles, ...]:
    """`behind`: only the input of this stream; the caller takes direct Kafka streams itself."""
    inputs = []
    wanted = range(len(found.streams)) if behind is None else sorted(found.inputs_of(behind))
    for stream in (found.streams[at] for at in wanted):
        if not stream.kind.endswith(_SOURCES) or (behind is not None and stream.offsets):
            continue
        if stream.kind != FILE_STREAM:
            raise WouldLose(
                f"{path}: what {stream.name or stream.kind} took since the state cannot be carried",
                "What a receiver took after the batch of the saved state is in the old "
                "application's own log alone, and only the old code reads it.",
                "Run the old code with --old-code and stop it gracefully right after a state was "
                "saved, or take the state alone: floodmark state CP --export state.parquet.",
            )
        if stream.has_own_filter:
            raise WouldLose(
                f"{path}: which files of {stream.directory} are read, a function of the old "
                "application says",
                "Only the application can call it: files that it leaves out would be read now.",
                "Let it take every file of the folder (textFileStream), or take the state alone: "
                "floodmark state CP --export state.parquet.",
            )
        require_remembered(path, found, stream, as_of)
        there = listed(spark, stream.directory or "")
        inputs.append(input_files(stream, as_of, last_batch(found, stream), there))
    for one in inputs:
        if one.gone:
            raise WouldLose(
                f"{path}: {len(one.gone)} files that the state does not hold are gone, the first "
                f"{one.gone[0]}",
                "The old application took them after it had saved its state.",
                "Bring them back to their folder first.",
            )
    return tuple(inputs)


def told_files(one: InputFiles) -> str:
    """What becomes of the files of one folder, in a sentence."""
    words = (
        f"{one.directory}: files that count as read: {len(one.read):,}; files that the state does "
        f"not hold, and that are read now: {len(one.unread):,}."
    )
    if one.passed_over:
        is_ = "is" if len(one.passed_over) == 1 else "are"
        first = one.passed_over[0].rpartition("/")[2]
        words += (
            f" Of those that count as read, {len(one.passed_over):,} {is_} older than the old "
            f"application's stream, which passed over them ({first})."
        )
    return words


def require_remembered(path: str, found: DStreamsCheckpoint, stream: DStream, as_of: int) -> None:
    """What a file stream has forgotten counts as read: nothing after the state may be of that."""
    first = min(stream.files, default=as_of)
    if first > as_of + (found.batch_ms or 0):
        raise WouldLose(
            f"{path}: the stream of {stream.directory} has forgotten which files it took after the "
            f"batch of {as_of}, whose state is the newest that is whole",
            f"It remembers its files from the batch of {first} on.",
            "Run the old code until it has saved a newer state, stop it, and try again.",
        )


def last_batch(found: DStreamsCheckpoint, stream: DStream) -> int:
    """The last batch that a file stream has chosen files for."""
    return max(stream.files, default=found.zero_time_ms or found.checkpoint_time_ms or 0)
