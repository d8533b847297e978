"""Runs a drilled pipeline once, in its own process with its own checkpoint and sinks.

    python -m floodmark.engine.drill.child RUN/spec.json

The process builds the application as `check` does, which starts and writes nothing. Its query
then reads the sample, writes to the run's own folders, and ends when it has read everything. The
process writes down what the sinks hold, for the process that started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from floodmark.addresses import public_url
from floodmark.checkpoint.conf_keys import CHECKPOINT_LOCATION
from floodmark.engine.app.effects.file_writes import let_write_below
from floodmark.engine.app.effects.jvm_calls import leave_out_jvm_calls
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Act, NotCarriedOut, Watch
from floodmark.engine.app.script_text import read_source
from floodmark.engine.code.query import Query, read_query
from floodmark.engine.drill.beginning import DEEDS, Copies
from floodmark.engine.drill.doors.file_doors import FileDoors
from floodmark.engine.drill.doors.outside import Outside
from floodmark.engine.drill.doors.overwrites import Overwrites
from floodmark.engine.drill.doors.places import Places
from floodmark.engine.drill.doors.spark_doors import SEEN, SparkDoors, unseen
from floodmark.engine.drill.doors.sql_doors import SqlDoors
from floodmark.engine.drill.doors.write_fence import let_write_only_below
from floodmark.engine.drill.killing.driver import SMALL_JVM
from floodmark.engine.drill.killing.marks import Marks
from floodmark.engine.drill.killing.slowing import slow_down
from floodmark.engine.drill.run_conf import force_settings, run_conf
from floodmark.engine.drill.run_spec import (
    CHECKPOINT,
    ERROR,
    FACTS,
    MARKS,
    ROWS,
    SENT,
    RunSpec,
    SinkNote,
    read_spec,
)
from floodmark.engine.drill.samples.sampled_sources import SampledSources
from floodmark.engine.drill.sink_rows import rows_of, write_rows
from floodmark.engine.pipelines.application import split_target
from floodmark.engine.pipelines.building import built
from floodmark.engine.proof.kept_rows import remembered_function, remembered_functions
from floodmark.engine.proof.scratch import require_outside
from floodmark.engine.run.failure import cause_of
from floodmark.engine.spark.jars import cache_folder
from floodmark.errors import FloodmarkError, NoAnswer, WrongUse

_TABLE = "_floodmark_table"
_IDLE_SECONDS, _POLL_SECONDS = 2.0, 0.1


class _EveryThread(Watch):
    """Watches all threads: the pipeline's functions run in threads of py4j and of their own."""

    harmless = frozenset()
    """Temporary files belong to the run, unless the code asks for another folder."""

    def applies(self) -> bool:
        return True

    def skip(self, words: str) -> None:
        """Refuse a write: a drill that leaves writes out would show nothing."""
        raise self.refuse(words)

    def refuse(self, words: str) -> NotCarriedOut:
        self.acts.append(Act(words, self.line()))
        return NotCarriedOut(f"a drill does not carry this out: {words}")


@dataclass(frozen=True)
class _Doors:
    places: Places
    marks: Marks
    files: FileDoors
    spark: SparkDoors
    watch: Watch


def main(arguments: list[str]) -> int:
    spec = read_spec(Path(arguments[0]))
    sys.dont_write_bytecode = True  # also not beside the user's modules
    outside = Outside(DEEDS)
    _fence(spec)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        _run(spec, outside)
    except FloodmarkError as error:
        told = {"status": error.status, "what": error.what, "why": error.why, "do": error.do}
        Path(spec.folder, ERROR).write_text(json.dumps(told), encoding="utf-8")
        return error.status
    return 0


def _end_with(parent: int) -> None:
    """End this process when the drill was killed, so that no driver stays; its JVM ends too."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _fence(spec: RunSpec) -> None:
    """Fence this process before it has other threads or processes, so that all are fenced."""
    folder = Path(spec.folder)
    for name in ("tmp", "local"):
        (folder / name).mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(folder / "tmp")
    # This includes what the JVM unpacks; it also writes no counters to the system's folder.
    os.environ["JDK_JAVA_OPTIONS"] = f'"-Djava.io.tmpdir={folder / "tmp"}" -XX:-UsePerfData'
    jars = cache_folder()
    jars.mkdir(parents=True, exist_ok=True)
    let_write_only_below([folder, Path(spec.shared), jars, *Path.home().glob(".ivy2*")])


def _run(spec: RunSpec, outside: Outside) -> None:
    folder = Path(spec.folder)
    let_write_below(str(folder))
    path, _ = split_target(spec.target)
    source = read_source(path)
    with contextlib.ExitStack() as closing:
        # Never removed: one of the user's threads may outlive the query.
        patches = Patches()
        doors = _installed(patches, spec)
        sample = SampledSources(spec.inputs, Path(spec.shared))
        sample.replace_sources(patches)
        force_settings(patches, spec)
        slow_down(patches)
        closing.enter_context(remembered_functions())
        found = closing.enter_context(
            built(
                spec.target,
                spec.settings,
                conf=run_conf(spec),
                log=folder / "spark.log",
                stdout_to_stderr=True,
                script=spec.script,
            )
        )
        sample.require_all_read()
        doors.files.refuse_clients(patches, source.text)
        leave_out_jvm_calls(patches, doors.watch)
        if found.checkpoint is not None:
            require_outside(folder, "--scratch", found.checkpoint, "the pipeline's checkpoint")
        copies = Copies(found.checkpoint, spec, outside)
        doors.places.bring = copies.bring
        _drill(found.writer, copies, doors, folder, spec, patches)


def _installed(patches: Patches, spec: RunSpec) -> _Doors:
    folder = Path(spec.folder)
    places, marks = Places(folder), Marks(folder)
    watch = _EveryThread(read_source(split_target(spec.target)[0]))
    sql = SqlDoors(places, marks, spec.database)
    sql.install(patches)
    files = FileDoors(places, marks, watch)
    files.install(patches)
    spark = SparkDoors(places, marks, sql.jdbc)
    spark.install(patches)
    _own_transactions(patches, places)
    return _Doors(places, marks, files, spark, watch)


def _own_transactions(patches: Patches, places: Places) -> None:
    """Let `once.delta` ask the run's own table which batches it has."""
    from floodmark.engine.sinks import exactly_once

    def asking(original: Any) -> Any:
        def recorded(batch: Any, path: str) -> Any:
            places.bring(path, places.of(path))
            return original(batch, str(places.of(path)))

        return recorded

    patches.wrap(exactly_once, "_recorded", asking)


def _drill(
    writer: Any, copies: Copies, doors: _Doors, folder: Path, spec: RunSpec, patches: Patches
) -> None:
    query = read_query(writer)
    spark = writer._spark
    for key, value in SMALL_JVM.items():
        if key.startswith("spark.sql.") and key not in spec.conf:
            spark.conf.set(key, value)
    writer = writer.option(CHECKPOINT_LOCATION, f"file://{folder / CHECKPOINT}")
    refused: list[FloodmarkError] = []
    if query.sink == "foreachBatch":
        function = remembered_function(writer)
        if function is None:
            raise unseen("a foreachBatch function that is not Python's")
        doors.spark.overwritten = Overwrites(folder, query)
        writer.foreachBatch(_wrapped(function, doors, refused))
    else:
        writer = _to_own_place(writer, query, doors.places)
    facts: dict[str, Any] = {
        "output_mode": query.output_mode,
        "sink": query.sink,
        "sources": [source.kind for source in query.sources],
        "beginning": asdict(copies.beginning),
    }
    _write_facts(folder, facts)
    began = time.monotonic()
    doors.files.enabled = True
    has_socket = "socket" in facts["sources"]
    trigger = {"processingTime": "200 milliseconds"} if has_socket else {"availableNow": True}
    start = writer.trigger(**trigger).start
    doors.spark.refuse_starts(patches)
    started = _started(start)
    doors.marks.started()
    try:
        if has_socket:
            _stop_when_idle(started, folder / MARKS / SENT)
        started.awaitTermination()
    except Exception as error:
        raise _failure(started, error, doors, refused) from error
    if query.sink == "foreachBatch" and not doors.places.notes:
        raise unseen("what the foreachBatch function writes: no write of it was seen")
    facts["seconds"] = time.monotonic() - began
    facts["rows"], facts["late"] = _counted_rows(started)
    facts["refused"] = list(
        dict.fromkeys(f"{act.words} ({act.where(doors.watch.source)})" for act in doors.watch.acts)
    )
    write_rows(spark, folder, doors.places.notes, spec.database)
    facts["wrote"] = any(_has_changed(spark, folder, one, copies) for one in doors.places.notes)
    _write_facts(folder, facts)


def _started(start: Callable[[], Any]) -> Any:
    """Start the query: Spark checks columns and sinks only now."""
    try:
        return start()
    except FloodmarkError:
        raise
    except Exception as error:
        words = str(error).partition("JVM stacktrace")[0].strip()
        raise NoAnswer("the query does not start", words) from error


def _write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the facts completely or not at all: the process that kills this one waits for them."""
    beside = folder / f".{FACTS}"
    beside.write_text(json.dumps(facts))
    beside.rename(folder / FACTS)


def _stop_when_idle(query: Any, sent: Path) -> None:
    """Stop a socket's query, which never ends, when all lines were sent and no batch has come."""
    idle = 0.0
    while query.isActive and idle < _IDLE_SECONDS:
        time.sleep(_POLL_SECONDS)
        status = query.status
        busy = status["isTriggerActive"] or status["isDataAvailable"] or not sent.exists()
        idle = 0.0 if busy else idle + _POLL_SECONDS
    query.stop()


def _counted_rows(query: Any) -> tuple[int, int]:
    """Return the number of rows that were read, and of rows that came after the watermark."""
    told = [json.loads(one.json()) for one in query._jsq.recentProgress()]
    operators = [one for each in told for one in each["stateOperators"]]
    late = sum(int(one["numRowsDroppedByWatermark"]) for one in operators)
    return sum(int(one["numInputRows"]) for one in told), late


def _has_changed(spark: Any, folder: Path, note: SinkNote, copies: Copies) -> bool:
    """Whether a sink's rows differ from those at the beginning of the run."""
    now = (folder / ROWS / Path(note.place).name).read_text(encoding="utf-8").splitlines()
    if not note.copied:
        return bool(now)
    before = replace(note, place=str(copies.original(Path(note.place))))
    return sorted(now) != sorted(rows_of(spark, before))


def _wrapped(
    function: Callable[[Any, int], Any], doors: _Doors, refused: list[FloodmarkError]
) -> Callable[[Any, int], None]:
    def call(rows: Any, batch: int) -> None:
        doors.marks.begin(batch)
        try:
            function(rows, batch)
        except FloodmarkError as error:
            refused.append(error)
            raise
        doors.marks.done(batch)

    return call


def _failure(
    query: Any, error: Exception, doors: _Doors, refused: list[FloodmarkError]
) -> FloodmarkError:
    if refused:
        return refused[0]
    if doors.watch.acts:
        act = doors.watch.acts[-1]
        found = unseen(f"this: {act.words}")
        return WrongUse(found.what, f"{act.where(doors.watch.source)}\n{found.why}", found.do)
    exception = query._jsq.exception()
    words = str(error)
    if exception.isDefined():
        words = cause_of(exception.get().getCause() or exception.get())
    if "ermission denied" in words:
        found = unseen("a write that the drill cannot redirect to the run's own folder")
        return WrongUse(found.what, f"{words}\n{found.why}", found.do)
    return NoAnswer("the query fails", words)


def _to_own_place(writer: Any, query: Query, places: Places) -> Any:
    """Return a writer to Spark's own sink, in a folder of the run."""
    table = getattr(writer, _TABLE, None)
    kind, path = (query.sink or "parquet").lower(), query.sink_options.get("path")
    if kind not in SEEN or (path is None and table is None):
        raise unseen(f"a {kind} sink")
    place = places.of_table(table) if table else places.of(str(path))
    options: Mapping[str, str] = {
        key: value for key, value in query.sink_options.items() if key in ("header", "sep")
    }
    shaped = query.schema_json if kind in ("csv", "json", "text", "xml") else None
    name = f"table {table}" if table else public_url(str(path))
    copied = path is not None and places.bring(str(path), place)
    places.note(SinkNote(name, str(place), kind, options, shaped, copied=copied))
    return writer.option("path", str(place))


if __name__ == "__main__":
    ended = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(ended)  # does not wait for threads of the user's, which do nothing more
