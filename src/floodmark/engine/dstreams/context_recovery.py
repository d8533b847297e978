"""Recovers the context of DStreams from their folder, as Spark's getOrCreate does.

A folder without a checkpoint gets one first, of the context that the code builds; what would be
recovered wrongly is refused.
"""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.engine.dstreams.catching_up import go_on_after_finished, write_under_newest_name
from floodmark.engine.dstreams.code_notes import (
    code_of,
    noted_code,
    require_same_code,
    write_code_note,
)
from floodmark.engine.dstreams.declaration import DStreamPipeline
from floodmark.engine.dstreams.founding import CarriedOver, found_context
from floodmark.engine.dstreams.quiet import require_quiet
from floodmark.engine.dstreams.takeover import (
    carried_over,
    require_readable,
    require_whole_state,
    set_aside,
    told_files,
)
from floodmark.engine.run.failure import sentence_of
from floodmark.errors import CannotRead, FloodmarkError, NotACheckpoint, NotThere, WrongUse
from floodmark.storage.files import WritableFiles
from floodmark.storage.load import load

_MANY = 100


@dataclass(frozen=True)
class DStreamOptions:
    """The options of `run` for DStreams, in addition to those for pipelines."""

    fresh_with_state: bool = False
    old_code: bool = False
    trust: bool = False
    reshaping: str | None = None
    """A file with a function that turns the old state into the new one."""


def _file_taken(found: DStreamsCheckpoint | None, time_ms: int) -> str:
    """Return which file Spark used: the newest one whose batch is the recovered one."""
    if found is not None and found.checkpoint_time_ms == time_ms and found.restart_file:
        return found.restart_file
    return f"an older file, of the batch of {time_ms}: newer ones could not be read"


@dataclass(frozen=True)
class ContextRecovery:
    """The folder from which a context is recovered, and the view that hears about it."""

    spark: Any
    pipeline: DStreamPipeline
    application: Path
    values: Mapping[str, Any]
    location: str
    files: WritableFiles
    say: Callable[[str], None]
    checkpoint: str
    """The location as the user gave it."""
    may_be_in_use: bool
    """The user allows to begin though something else may still write there."""

    def recover(self, options: DStreamOptions) -> Any:
        saved = self._saved()
        code = code_of(self.pipeline, self.values)
        if saved is None:
            if options.fresh_with_state:
                self.say("there is no old state here: it begins with an empty one")
            self._found(code, None)
        elif options.fresh_with_state:
            assert saved.dstreams is not None
            self._require_quiet(saved, noted_code(self.files, saved.dstreams))
            carried = carried_over(self.spark, self.files, saved, options.trust, options.reshaping)
            self._tell_carried(saved.dstreams, carried)
            self._found(code, carried)
        else:
            assert saved.dstreams is not None
            require_readable(self.location, saved.dstreams)
            require_whole_state(self.location, saved.dstreams, str(self.application))
            note = noted_code(self.files, saved.dstreams)
            self._require_quiet(saved, note)
            if not options.old_code:
                require_same_code(self.location, saved.dstreams, note, code, str(self.application))
            elif note is None or note["code"] != code:
                self.say("runs the code that is saved in the checkpoint, not this file's")
            self._note(str(note["code"]) if note else "", saved.dstreams.zero_time_ms or 0)
            for words in set_aside(saved):
                self.say(words)
        return self._get_or_create()

    def _require_quiet(self, saved: Checkpoint, note: Mapping[str, Any] | None) -> None:
        """Watch a plain script's folder; a context that floodmark started holds a lease instead."""
        if note is None and not self.may_be_in_use:
            require_quiet(self.files, saved)

    def _saved(self) -> Checkpoint | None:
        try:
            found = load(self.files)
        except NotThere:
            return None
        except NotACheckpoint:
            if not self.files.level().files:
                return None
            raise
        if found.kind is not Kind.DSTREAMS:
            raise WrongUse(
                f"{self.location} is the checkpoint of a Structured Streaming query",
                "DStreams write other files, and Spark would see both.",
                "Give the DStreams a folder of their own.",
            )
        return found

    def _found(self, code: str, carried: CarriedOver | None) -> None:
        founded = found_context(
            self.spark,
            self.pipeline,
            dict(self.values),
            self.location,
            self.files,
            carried,
            partial(self._note, code),
        )
        saved = ", ".join(f"{one / 1000:g} s" for one in sorted(set(founded.intervals_ms)))
        words = f"begins a new context in {self.checkpoint}"
        self.say(f"{words}, state saved every {saved}" if saved else words)
        for folder, number in founded.passed_over:
            files = "1 file that was" if number == 1 else f"{number:,} files that were"
            self.say(f"ignores {files} in {folder} before this context: Spark reads new ones")

    def _note(self, code: str, zero_ms: int) -> None:
        try:
            write_code_note(self.files, self.pipeline, code, zero_ms, str(self.spark.version))
        except FloodmarkError as error:
            self.say(f"no note of this start was written: {error.what}")

    def _get_or_create(self) -> Any:
        from pyspark.streaming import StreamingContext

        def absent() -> Any:
            raise CannotRead(f"{self.location}: Spark finds no checkpoint there")

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # DStreams are old: the user knows
                ssc = StreamingContext.getOrCreate(self.location, absent)
        except FloodmarkError:
            raise
        except Exception as error:
            raise CannotRead(
                f"{self.location}: Spark cannot recover the context",
                sentence_of(error),
                "Another Spark or Python wrote it, or one of its classes is missing: use those, "
                f"or begin anew: "
                f"floodmark run {shlex.quote(str(self.application))} "
                "--fresh-with-state",
            ) from error
        time_ms = int(ssc._jssc.ssc().initialCheckpoint().checkpointTime().milliseconds())
        found = load(self.files).dstreams
        self.say(f"recovers the context from {_file_taken(found, time_ms)}")
        names = found.checkpoint_times if found else ()
        write_under_newest_name(ssc, max((time_ms, *names)))
        if found and found.checkpoint_time_ms == time_ms:
            time_ms = max(time_ms, found.planned_time_ms or 0)
            go_on_after_finished(ssc, time_ms)
        missed = (int(time.time() * 1000) - time_ms) // self.pipeline.batch_ms
        if missed > _MANY:
            self.say(f"runs {missed:,} batches that it missed while it was down")
        return ssc

    def _tell_carried(self, found: DStreamsCheckpoint, carried: CarriedOver) -> None:
        keys = sum(len(pairs) for _, pairs in carried.states)
        unread = sum(len(one.unread) for one in carried.inputs)
        again = sum(
            len(names)
            for stream in found.streams
            for time_ms, names in stream.files.items()
            if time_ms > carried.as_of_ms
        )
        words = f"takes over {keys:,} keys as of the batch of {carried.as_of_ms}"
        words += f" and {unread:,} files that this state does not hold"
        self.say(words)
        for words in (*carried.set_aside, *map(told_files, carried.inputs)):
            self.say(words)
        for at, (_, pairs) in enumerate(carried.states if len(carried.states) > 1 else ()):
            self.say(
                f"the state of stream {found.lasting_streams[at]} ({len(pairs):,} keys) goes to "
                f"updateStateByKey number {at + 1} of the new code, in the order of its outputs"
            )
        if again:
            self.say(f"{again:,} of them had output before: their output comes again")
