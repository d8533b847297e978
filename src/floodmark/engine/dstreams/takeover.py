"""Collects what a new context takes over from an old folder: newest whole state, unread input."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
from floodmark.storage.user_code import code_bytes

_SOURCES = "InputDStream"
Reshape = Callable[[int, Any, Any], Any]


def carried_over(
    spark: Any, files: Files, checkpoint: Checkpoint, trust: bool, reshaping: str | None
) -> CarriedOver:
    """Return all that the new context needs; refuse where records would be lost."""
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
            "Neither Spark nor floodmark can continue from it.",
            f"`floodmark doctor {shlex.quote(path)}"
            "` says what is damaged; restore a file from a backup.",
        )


def require_all_saved(path: str, found: DStreamsCheckpoint) -> None:
    """Refuse an unsaved state: it would begin empty, or get another stream's saved state."""
    unsaved = found.unsaved_streams
    if unsaved:
        interval = max(found.streams[at].checkpoint_interval_ms or 0 for at in unsaved)
        raise WouldLose(
            f"{path}: a state is not saved yet: stream {found.named_streams(unsaved)}",
            "States are handed over in their order: this state would begin empty, or get another "
            "stream's state.",
            f"Run the old code until it has saved this state (every {interval / 1000:g} s), stop "
            f"it, and "
            "try again.",
        )


def require_no_window(path: str, found: DStreamsCheckpoint) -> None:
    """Refuse a window: it removes what it has added, which a new context does not have."""
    windows = [at for at, one in enumerate(found.streams) if one.kind.endswith("WindowedDStream")]
    saving = [at for at in windows if found.streams[at].checkpoint_interval_ms is not None]
    if saving:
        raise WouldLose(
            f"{path}: a window cannot be carried over: stream {found.named_streams(saving)}",
            "When its time is over, a window removes what it has added, with the batches that "
            "added "
            "it; a new context does not have these batches.",
            "Keep the rows of a window with updateStateByKey, or begin in another folder if "
            "the window may begin empty.",
        )


def require_whole_state(path: str, found: DStreamsCheckpoint, application: str) -> None:
    """Refuse a saved RDD that is gone: Spark takes the newest file, and fails without the RDD."""
    for _, location in found.gone_rdds:
        raise CannotRead(
            f"{path}: {found.restart_file} names a state that is gone: {location}",
            "Spark takes this file, but does not start without that state.",
            "Begin anew with the newest whole state and the input after it: "
            f"floodmark run {shlex.quote(application)} --fresh-with-state",
        )


def set_aside(
    checkpoint: Checkpoint, streams: Iterable[int] = (), as_of: int | None = None
) -> tuple[str, ...]:
    """Return sentences about newer data that is not used: unreadable files, incomplete states."""
    found = checkpoint.dstreams
    assert found is not None
    reasons = {item.path: item.reason.rstrip(".") for item in checkpoint.unreadable}
    said = []
    for file in reversed(found.graph_files):
        if file.path == found.restart_file:
            break
        if file.path in reasons:
            said.append(
                f"{file.path} cannot be read ({reasons[file.path]}), so {found.restart_file} is "
                "used",
            )
    for at in streams if as_of is not None else ():
        whole = {rdd.batch_time_ms for rdd in found.rdds if rdd.stream == at and is_whole(rdd)}
        said += [
            f"stream {at}: the state after the batch of {time} is not complete here, so the state "
            f"of {as_of} is used"
            for time in found.streams[at].rdds
            if time > (as_of or 0) and time not in whole
        ]
    return tuple(said)


def is_whole(rdd: SavedRdd) -> bool:
    return rdd.missing is None and rdd.partitions > 0


def state_time(path: str, found: DStreamsCheckpoint, streams: Sequence[int]) -> int:
    """Return the newest batch for which all these states are saved; without state, the last one."""
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
            f"{path}: there is no batch for which every state is saved",
            "The folders of some saved RDDs are gone, or streams save at different times.",
            f"`floodmark inspect {shlex.quote(path)}` lists them. "
            "`floodmark leave-dstreams --stream N` takes "
            f"one state alone, as of its own newest batch. N is one of: "
            f"{found.named_streams(streams)}.",
        )
    return max(common)


@dataclass(frozen=True)
class OldState:
    """The keys and values of one stream, after the user's function if there is one."""

    partitions: int
    pairs: list[tuple[Any, Any]]
    without_order: frozenset[str] = frozenset()
    """The names, `key` or `value`, of objects of a class: their fields have no order."""


def old_state(
    files: Files,
    checkpoint: Checkpoint,
    stream: int,
    as_of: int,
    trust: bool,
    reshaping: str | None,
    conf: Mapping[str, str] | None = None,
) -> OldState:
    """Read one state as of a batch; `conf` is for the Spark that reads what only Spark can read."""
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
                    f"the function for the state returns {type(pair).__name__}",
                    do="Return the new key and value: return key, value. None drops the key.",
                )
        pairs.append(pair)
    return OldState(len(view.partitions), pairs, frozenset(without_order))


def _plain(value: Any) -> Any:
    return plain_value(value, Budget())


def _reshape(path: str) -> Reshape:
    """Return the user's `def state(key, value): …`, or `state_1` for the second state."""
    spec = importlib.util.spec_from_file_location("floodmark_reshaping", path)
    if spec is None or spec.loader is None:
        raise WrongUse(f"{path}: not a Python file", do="Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["floodmark_reshaping"] = module
    try:
        code_bytes(Path(path))  # Python's own reading has no end where the file has none
        spec.loader.exec_module(module)
    except (WrongUse, CannotRead):
        raise
    except Exception as error:
        raise WrongUse(f"{path} fails on import: {type(error).__name__}: {error}") from error
    functions = {name: one for name, one in vars(module).items() if callable(one)}

    def reshape(number: int, key: Any, value: Any) -> Any:
        function = functions.get(f"state_{number}") or functions.get("state")
        return (key, value) if function is None else function(key, value)

    if not any(name == "state" or name.startswith("state_") for name in functions):
        raise WrongUse(
            f"{path} has no function named state",
            "The function turns each key and value of the old state into the new ones.",
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
    """Return input that the state does not hold; `behind`: only this stream's, without Kafka's."""
    inputs = []
    wanted = range(len(found.streams)) if behind is None else sorted(found.inputs_of(behind))
    for stream in (found.streams[at] for at in wanted):
        if not stream.kind.endswith(_SOURCES) or (behind is not None and stream.offsets):
            continue
        if stream.kind != FILE_STREAM:
            raise WouldLose(
                f"{path}: what {stream.name or stream.kind} received since the state cannot be "
                f"carried over",
                "Input that a receiver took after the batch of the saved state is only in the old "
                "application's own log, and only the old code can read that.",
                "Run the old code with --old-code and stop it gracefully right after a state was "
                "saved, or take the state alone: floodmark state CP --export state.parquet.",
            )
        if stream.has_own_filter:
            raise WouldLose(
                f"{path}: a function of the old application decides which files of "
                f"{stream.directory} "
                "are read",
                "Only the application can call that function: files that it excludes would now "
                "be read.",
                "Let the application read every file of the folder (textFileStream), or take the "
                "state alone: "
                "floodmark state CP --export state.parquet.",
            )
        require_remembered(path, found, stream, as_of)
        there = listed(spark, stream.directory or "")
        inputs.append(input_files(stream, as_of, last_batch(found, stream), there))
    for one in inputs:
        if one.gone:
            raise WouldLose(
                f"{path}: {len(one.gone)} files that the state does not hold are gone; the first "
                f"is "
                f"{one.gone[0]}",
                "The old application read them after it had saved its state.",
                "Bring them back to their folder first.",
            )
    return tuple(inputs)


def told_files(one: InputFiles) -> str:
    """Return a sentence about a folder: which files count as read, and which are read now."""
    words = (
        f"{one.directory}: {len(one.read):,} files count as read; the new context reads "
        f"{len(one.unread):,} files that the state does not hold."
    )
    if one.passed_over:
        is_ = "is" if len(one.passed_over) == 1 else "are"
        first = one.passed_over[0].rpartition("/")[2]
        words += (
            f" {len(one.passed_over):,} of the read files {is_} older than the old "
            f"application's stream, which ignored them ({first})."
        )
    return words


def require_remembered(path: str, found: DStreamsCheckpoint, stream: DStream, as_of: int) -> None:
    """Refuse if a file stream has forgotten files after the state: they would count as read."""
    first = min(stream.files, default=as_of)
    if first > as_of + (found.batch_ms or 0):
        raise WouldLose(
            f"{path}: the stream of {stream.directory} has forgotten which files it read after the "
            f"batch of {as_of}, the newest batch with a whole state",
            f"It remembers its files from the batch of {first} on.",
            "Run the old code until it has saved a newer state, stop it, and try again.",
        )


def last_batch(found: DStreamsCheckpoint, stream: DStream) -> int:
    """Return the last batch for which a file stream has chosen files."""
    return max(stream.files, default=found.zero_time_ms or found.checkpoint_time_ms or 0)
