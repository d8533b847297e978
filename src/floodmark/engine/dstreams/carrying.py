"""What a new context takes over from an old folder: the newest whole state, and unread input."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.dstreams.folder import FILE_STREAM, PYTHON, DStream, DStreamsCheckpoint
from floodmark.checkpoint.model import Checkpoint
from floodmark.dstreams.input_files import InputFiles, input_files
from floodmark.dstreams.plain_values import Budget, has_names_alone, plain_value
from floodmark.engine.dstreams.asking import parts_through_spark
from floodmark.engine.dstreams.founding import CarriedOver
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
    as_of = state_time(checkpoint.path, found)
    states = [
        old_state(files, checkpoint, stream, as_of, trust, reshaping)
        for stream in found.state_streams
    ]
    return CarriedOver(
        as_of,
        tuple((one.partitions, one.pairs) for one in states),
        unread_inputs(spark, checkpoint.path, found, as_of),
    )


def require_readable(path: str, found: DStreamsCheckpoint) -> None:
    if found.restart_file is None:
        raise CannotRead(
            f"{path}: none of its checkpoint files can be read",
            "Neither Spark nor floodmark can go on from there.",
            f"`floodmark doctor {shlex.quote(path)}"
            "` says what is damaged; restore a file from a backup.",
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


def state_time(path: str, found: DStreamsCheckpoint) -> int:
    """The newest batch of which every state is saved as a whole; without state, the last one."""
    if not found.state_streams:
        pending = found.pending_times or ()
        done = found.checkpoint_time_ms or 0
        return min(done, min(pending) - 1) if pending else done
    whole = [
        {
            rdd.batch_time_ms
            for rdd in found.rdds
            if rdd.stream == stream and rdd.missing is None and rdd.partitions
        }
        for stream in found.state_streams
    ]
    common = {time for time in set.intersection(*whole) if time is not None}
    if not common:
        raise CannotRead(
            f"{path}: there is no batch of which every state is saved",
            "The folders of some saved RDDs are gone, or streams save at different times.",
            f"`floodmark inspect {shlex.quote(path)}` lists them.",
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
    number = inside.state_streams.index(stream)
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
    spark: Any, path: str, found: DStreamsCheckpoint, as_of: int, kafka_too: bool = False
) -> tuple[InputFiles, ...]:
    """`kafka_too`: the caller takes the ranges of direct Kafka streams itself."""
    inputs = []
    for stream in found.streams:
        if not stream.kind.endswith(_SOURCES) or (kafka_too and stream.offsets):
            continue
        if stream.kind != FILE_STREAM:
            raise WouldLose(
                f"{path}: what {stream.name or stream.kind} took since the state cannot be carried",
                "What a receiver took after the batch of the saved state is in the old "
                "application's own log alone, and only the old code reads it.",
                "Run the old code with --old-code and stop it gracefully right after a state was "
                "saved, or take the state alone: floodmark state CP --export state.parquet.",
            )
        inputs.append(input_files(stream, as_of, last_batch(found, stream), listed(spark, stream)))
    for one in inputs:
        if one.gone:
            raise WouldLose(
                f"{path}: {len(one.gone)} files that the state does not hold are gone, the first "
                f"{one.gone[0]}",
                "The old application took them after it had saved its state.",
                "Bring them back to their folder first.",
            )
    return tuple(inputs)


def last_batch(found: DStreamsCheckpoint, stream: DStream) -> int:
    """The last batch that a file stream has chosen files for."""
    return max(stream.files, default=found.zero_time_ms or found.checkpoint_time_ms or 0)


def listed(spark: Any, stream: DStream) -> list[tuple[str, int]]:
    """The files that a file stream sees, by Hadoop's own listing, as the stream makes it."""
    jvm = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(stream.directory)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    found: list[tuple[str, int]] = []
    for folder in system.globStatus(path) or ():
        if not folder.isDirectory():
            continue
        for status in system.listStatus(folder.getPath()):
            if not status.isDirectory() and not str(status.getPath().getName()).startswith("."):
                found.append((str(status.getPath().toString()), int(status.getModificationTime())))
    return found
