"""Makes a new context: builds its graph, writes its first checkpoint, and recovers from it.

Spark writes the first checkpoint only after it has planned the first batch. A driver killed
before that begins anew, and a file stream then skips the files that arrived in between. This module
writes the checkpoint first, with the carried state and input, so that every start is a recovery.
"""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.relative_path import RelativePath
from floodmark.dstreams.input_files import InputFiles
from floodmark.engine.dstreams.declaration import DStreamPipeline
from floodmark.engine.dstreams.input_listing import listed
from floodmark.engine.dstreams.jvm_graph import (
    FILES,
    STATE,
    BuiltStream,
    private_field,
    set_intervals,
    streams_of,
)
from floodmark.engine.run.failure import sentence_of
from floodmark.errors import FloodmarkError, WouldLose, WrongUse
from floodmark.storage.files import WritableFiles

_REMEMBER = "spark.streaming.fileStream.minRememberDuration"
_CHECKPOINT = re.compile(r"checkpoint-(\d{1,18})(?:\.bk)?")
_LONGEST_WAIT_MS = 60_000
_SLACK_MS = 600_000


@dataclass(frozen=True)
class CarriedOver:
    """State and input that a new context takes over from an old one."""

    as_of_ms: int
    states: tuple[tuple[int, list[tuple[Any, Any]]], ...] = ()
    """(partitions, pairs of keys and values) of each stream with state, in the streams' order."""
    inputs: tuple[InputFiles, ...] = ()
    set_aside: tuple[str, ...] = ()
    """Sentences about newer data in the old folder that was not used."""


@dataclass(frozen=True)
class Founded:
    zero_time_ms: int
    file: str
    intervals_ms: tuple[int, ...]
    passed_over: tuple[tuple[str, int], ...] = ()
    """(folder, number of old files) of file streams that do not read files from before."""


def found_context(
    spark: Any,
    pipeline: DStreamPipeline,
    values: dict[str, Any],
    location: str,
    files: WritableFiles,
    carried: CarriedOver | None,
    note: Any,
) -> Founded:
    """Write `checkpoint-<time>` of a new context; call `note` with the time before that."""
    context = spark.sparkContext
    with _remembering(context, carried):
        ssc = _built(context, pipeline, values, location)
        try:
            return _written(ssc, pipeline, files, carried, note)
        finally:
            with contextlib.suppress(Exception):  # it was never started
                ssc._jssc.stop(False)


def _built(context: Any, pipeline: DStreamPipeline, values: dict[str, Any], location: str) -> Any:
    from pyspark.streaming import StreamingContext

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # DStreams are old: the user knows
        ssc = StreamingContext(context, pipeline.batch_ms / 1000)
    ssc.checkpoint(location)
    try:
        pipeline.function(ssc, **values)
    except FloodmarkError:
        raise
    except Exception as error:
        raise WrongUse(
            f"dstream {pipeline.name} fails while it builds its streams: {type(error).__name__}",
            sentence_of(error),
            "Correct the function: nothing was started.",
        ) from error
    return ssc


def _written(
    ssc: Any,
    pipeline: DStreamPipeline,
    files: WritableFiles,
    carried: CarriedOver | None,
    note: Any,
) -> Founded:
    streams = streams_of(ssc)
    intervals = set_intervals(ssc, streams, pipeline.save_state_ms)
    java, jvm = ssc._jssc.ssc(), ssc._jvm
    zero_ms = _zero_after(_newest_ms(files), pipeline.batch_ms)
    zero = jvm.org.apache.spark.streaming.Time(zero_ms)
    try:
        java.graph().validate()
        java.graph().start(zero)
        if carried is not None:
            _give_states(ssc, streams, carried, zero)
            _give_inputs(ssc, streams, carried, zero_ms - pipeline.batch_ms)
        java.graph().updateCheckpointData(zero)
        checkpoint = jvm.org.apache.spark.streaming.Checkpoint
        # Write the checkpoint of the first batch, so that a recovery begins with it: at zero there
        # is
        # only the carried state, which would be written to the output once more.
        first = jvm.org.apache.spark.streaming.Time(zero_ms + pipeline.batch_ms)
        data = bytes(checkpoint.serialize(checkpoint(java, first), java.conf()))
    except FloodmarkError:
        raise
    except Exception as error:
        raise WrongUse(
            f"Spark refuses the streams of {pipeline.name}",
            sentence_of(error),
            "What a function uses is saved with the streams: open connections inside "
            "foreachRDD, and use no SparkContext in it.",
        ) from error
    name = f"checkpoint-{zero_ms}"
    note(zero_ms)
    files.write(RelativePath(name), data)
    return Founded(zero_ms, name, tuple(intervals), _passed_over(ssc, streams, carried))


def _passed_over(
    ssc: Any, streams: Sequence[BuiltStream], carried: CarriedOver | None
) -> tuple[tuple[str, int], ...]:
    """Return folders with files from before the stream, if no old application has read them."""
    known = {_folder(one.directory) for one in carried.inputs} if carried else set()
    found = []
    for stream in (one for one in streams if one.kind == FILES):
        directory = str(private_field(stream.jvm, "directory").get(stream.jvm))
        begins = int(private_field(stream.jvm, "initialModTimeIgnoreThreshold").get(stream.jvm))
        if _folder(directory) in known:
            continue
        before = sum(time <= begins for _, time in listed(ssc, directory))
        if before:
            found.append((directory, before))
    return tuple(found)


def _newest_ms(files: WritableFiles) -> int:
    """Return the time of the newest checkpoint in the folder; -1 where there is none."""
    names = (_CHECKPOINT.fullmatch(name) for name in files.level().files)
    return max((int(name[1]) for name in names if name), default=-1)


def _zero_after(newest_ms: int, batch_ms: int) -> int:
    """Return the new context's time: later than all others, or Spark would recover one of those."""
    ahead_ms = newest_ms + batch_ms - int(time.time() * 1000)
    if ahead_ms > max(_LONGEST_WAIT_MS, 2 * batch_ms):
        raise WouldLose(
            f"the newest checkpoint's time is {ahead_ms // 1000:,} seconds in the future",
            "Spark takes the checkpoint with the newest time, so it would ignore the new "
            "context's.",
            "Correct this machine's clock, or wait until that time.",
        )
    if ahead_ms > 0:
        time.sleep(ahead_ms / 1000)
    return int(time.time() * 1000) // batch_ms * batch_ms


def _give_states(ssc: Any, streams: Sequence[BuiltStream], carried: CarriedOver, zero: Any) -> None:
    """Give the states to the streams, as if each had been saved just before the first batch."""
    takers = [stream for stream in streams if stream.must_save]
    if len(takers) != len(carried.states) or any(one.kind != STATE for one in takers):
        kinds = ", ".join(one.kind for one in takers) or "none"
        raise WouldLose(
            f"the old application has {len(carried.states)} states, but the new code keeps "
            f"{len(takers)} ({kinds})",
            "States are handed over in their order, to as many updateStateByKey streams.",
            "Keep the same number of states in the new code. The old state stays where it is: "
            "`floodmark state CP --export state.parquet` keeps a copy.",
        )
    context = ssc.sparkContext
    for stream, (partitions, pairs) in zip(takers, carried.states, strict=True):
        rdd = context.parallelize(pairs, max(partitions, 1))
        rdd.checkpoint()
        rdd.count()
        saved = context._jsc.checkpointFile(rdd.getCheckpointFile()).rdd()
        stream.jvm.generatedRDDs().put(zero, saved)


def _give_inputs(
    ssc: Any, streams: Sequence[BuiltStream], carried: CarriedOver, before_ms: int
) -> None:
    left = {_folder(one.directory): one for one in carried.inputs}
    for stream in streams:
        if stream.kind != FILES:
            continue
        directory = str(private_field(stream.jvm, "directory").get(stream.jvm))
        taken = left.pop(_folder(directory), None)
        if taken is None:
            continue
        threshold = private_field(stream.jvm, "initialModTimeIgnoreThreshold")
        threshold.setLong(stream.jvm, taken.ignores_before_ms)
        names = ssc.sparkContext._gateway.new_array(
            ssc._jvm.java.lang.String, len(taken.newer_read)
        )
        for at, name in enumerate(taken.newer_read):
            names[at] = name
        by_time = private_field(stream.jvm, "batchTimeToSelectedFiles").get(stream.jvm)
        by_time.put(ssc._jvm.org.apache.spark.streaming.Time(before_ms), names)
    for unread in (one for one in left.values() if one.unread):
        raise WouldLose(
            f"the new code does not read {unread.directory}, and {len(unread.unread)} files "
            "there are not read yet",
            "The old application would have read them.",
            "Read the folder in the new code, or run the old code until it has read them.",
        )


def _folder(directory: str) -> str:
    return "/" + directory.removeprefix("file:").strip("/")


@contextlib.contextmanager
def _remembering(context: Any, carried: CarriedOver | None) -> Iterator[None]:
    """While streams are built, let a file stream remember long enough for the carried input."""
    inputs = [one for one in carried.inputs if one.unread or one.newer_read] if carried else []
    oldest = min((one.ignores_before_ms for one in inputs), default=None)
    needed = 0 if oldest is None else int(time.time() * 1000) - oldest + _SLACK_MS
    conf = context._jsc.sc().conf()
    has = conf.getTimeAsMs(_REMEMBER, "60s")
    if needed <= has:
        yield
        return
    conf.set(_REMEMBER, f"{needed // 1000}s")
    try:
        yield
    finally:
        conf.set(_REMEMBER, f"{has // 1000}s")
