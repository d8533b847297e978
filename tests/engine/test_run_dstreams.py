"""`floodmark run` of DStreams: recovered, refused where the code changed, carried over."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from drivers import Driver

import floodmark
from floodmark.checkpoint.dstreams.folder import DStream
from floodmark.dstreams.input_files import input_files
from floodmark.engine.dstreams.declaration import dstream
from floodmark.engine.dstreams.founding import _zero_after
from floodmark.engine.dstreams.intervals import milliseconds_of, state_interval
from floodmark.engine.dstreams.runtime import _Run
from floodmark.engine.dstreams.standstill import SchedulerDied, Standstill
from floodmark.engine.dstreams.start_thread import Starting
from floodmark.engine.dstreams.takeover import require_whole_state
from floodmark.engine.run.failure import is_outage, sentence_of
from floodmark.engine.run.signals import StopSignals
from floodmark.errors import CannotRead, FloodmarkError, InUse, Refused, WouldLose, WrongUse

APP = """
import json
from floodmark import dstream

def update(paid, total):
    {update}

def show(time, totals):
    found = dict(totals.collect())
    with open("{root}/totals.tmp", "w") as out:
        json.dump(found, out)
    __import__("os").replace("{root}/totals.tmp", "{root}/totals.json")

@dstream(checkpoint="{root}/cp", batch="500ms", save_state="1s")
def sales(ssc):
    lines = ssc.textFileStream("{root}/in").map(lambda line: line.split(","))
    paid = lines.map(lambda row: (row[0], float(row[1])))
    paid.updateStateByKey(update, 2).foreachRDD(show)
"""
STRUCTURED = """
import json
from floodmark import pipeline
from pyspark.sql import functions as F

def store(frame, batch):
    with open("{root}/structured.json", "w") as out:
        json.dump({{row.customer: row.total for row in frame.collect()}}, out)

@pipeline(checkpoint="{root}/new", conf={{"spark.sql.shuffle.partitions": "2"}})
def totals(spark, start):
    rows = spark.readStream.schema("customer STRING, paid DOUBLE").csv("{root}/in")
    sums = rows.groupBy("customer").agg(F.sum("paid").alias("total"))
    return sums.writeStream.outputMode("complete").foreachBatch(store)
"""
FIRST = "return round(sum(paid) + (total or 0.0), 2)"
SECOND = "total = total or {'sum': 0.0}\n    return {'sum': round(total['sum'] + sum(paid), 2)}"


def test_a_state_that_is_gone_is_named_before_spark_is_asked() -> None:
    golden = Path(__file__).parents[1] / "golden" / "4.2" / "dstreams" / "checkpoint"
    found = floodmark.inspect(str(golden)).dstreams
    assert found is not None
    assert found.state_streams
    require_whole_state("cp", found, "app.py")
    with pytest.raises(CannotRead, match="names a state that is gone") as refused:
        require_whole_state("cp", replace(found, rdds=()), "app.py")
    assert str(refused.value.do).endswith("floodmark run app.py --fresh-with-state")


def test_a_file_that_lags_behind_its_streams_tells_what_was_planned() -> None:
    golden = Path(__file__).parents[1] / "golden" / "4.2" / "dstreams" / "checkpoint"
    found = floodmark.inspect(str(golden)).dstreams
    assert found is not None
    times = [time for stream in found.streams for time in (*stream.files, *stream.rdds)]
    early = replace(found, checkpoint_time_ms=min(times) - 60_000)
    assert early.planned_time_ms == found.planned_time_ms == max(times)
    assert replace(early, streams=()).planned_time_ms == early.checkpoint_time_ms


class Seen:
    """A view that ends the run when the totals are what is waited for."""

    def __init__(self, root: Path, wanted: dict[str, Any], saved_after: int = 0) -> None:
        self.root, self.wanted, self.saved_after = root, wanted, saved_after
        self.said: list[str] = []
        self.late = False

    def __enter__(self) -> Seen:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, _: str, words: str) -> None:
        self.said.append(words)

    def state(self, _: str, words: str) -> None:
        return

    def batch(self, _: Any) -> None:
        return

    def _watch(self) -> None:
        from pyspark.streaming import StreamingContext

        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not self._reached():
            time.sleep(0.05)
        self.late = not self._reached()
        active = StreamingContext._activeContext
        if active is not None:
            active.stop(False, True)

    def _reached(self) -> bool:
        totals = self.root / "totals.json"
        if not totals.exists() or json.loads(totals.read_text()) != self.wanted:
            return False
        inside = floodmark.inspect(str(self.root / "cp")).dstreams
        return inside is not None and sum(rdd.bytes > 0 for rdd in inside.rdds) >= self.saved_after


def _put(root: Path, name: str, lines: str) -> None:
    beside = root / f".{name}"
    beside.write_text(lines)
    beside.rename(root / "in" / name)
    os.utime(root / "in" / name)


def _run(root: Path, update: str, wanted: dict[str, Any], saved: int = 0, **options: Any) -> Seen:
    from floodmark.engine.dstreams.application import load_dstream
    from floodmark.engine.dstreams.context_recovery import DStreamOptions
    from floodmark.engine.dstreams.runtime import run_dstream
    from floodmark.engine.run.options import RunOptions

    app = root / f"sales_{abs(hash(update))}.py"
    app.write_text(APP.format(update=update, root=root))
    seen = Seen(root, wanted, saved)
    one, options_ = load_dstream(str(app)), DStreamOptions(**options)
    report = run_dstream(one, app, RunOptions(), options_, seen)
    assert not seen.late, seen.said
    assert report.pipelines[0].ended == "finished"
    return seen


@pytest.mark.spark
def test_founded_recovered_refused_and_carried_over(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path
    (root / "in").mkdir()
    _put(root, "before.csv", "c1,1000\n")  # older than the stream: not read, as Spark has it

    def soon(name: str, lines: str) -> None:
        """Once the context is there."""

        def wait() -> None:
            deadline = time.monotonic() + 300
            while not list((root / "cp").glob("checkpoint-*")) and time.monotonic() < deadline:
                time.sleep(0.05)
            _put(root, name, lines)

        threading.Thread(target=wait, daemon=True).start()

    soon("a.csv", "c1,10.5\nc2,4\n")
    seen = _run(root, FIRST, {"c1": 10.5, "c2": 4.0}, saved=1)
    assert any("begins a new context" in words for words in seen.said)
    assert any("state saved every 1 s" in words for words in seen.said)
    assert any(words.startswith("ignores 1 file that was in") for words in seen.said)
    inside = floodmark.inspect(str(root / "cp")).dstreams
    assert inside is not None
    assert (inside.batch_ms, inside.state_interval_ms) == (500, 1000)

    # While it is down, a file comes: the recovery reads it.
    _put(root, "b.csv", "c1,1.5\n")
    seen = _run(root, FIRST, {"c1": 12.0, "c2": 4.0}, saved=1)
    assert any(words.startswith("recovers the context from checkpoint-") for words in seen.said)

    # Other code is refused, and nothing of the folder changes.
    before = sorted(path.name for path in (root / "cp").glob("checkpoint-*"))
    with pytest.raises(Refused, match="the code has changed") as refused:
        _run(root, SECOND, {})
    assert "--fresh-with-state" in refused.value.do
    assert "--old-code" in refused.value.do
    assert sorted(path.name for path in (root / "cp").glob("checkpoint-*")) == before

    # Unless the user says that the old code is what is wanted: it runs on, as it was saved.
    _put(root, "old.csv", "c2,0.5\n")
    seen = _run(root, SECOND, {"c1": 12.0, "c2": 4.5}, saved=1, old_code=True)
    assert "runs the code that is saved in the checkpoint, not this file's" in seen.said

    # Carried over, through a function, with a file that came meanwhile.
    _put(root, "c.csv", "c2,6\nc3,1\n")
    reshape = root / "reshape.py"
    reshape.write_text("def state(key, value):\n    return key, {'sum': value}\n")
    wanted = {"c1": {"sum": 12.0}, "c2": {"sum": 10.5}, "c3": {"sum": 1.0}}
    seen = _run(root, SECOND, wanted, fresh_with_state=True, reshaping=str(reshape))
    assert any(words.startswith("takes over 2 keys") for words in seen.said)
    older = "1 of the read files is older than the old application's stream"
    assert any(older in words for words in seen.said), seen.said
    # And from then on the new code recovers as any other.
    _put(root, "d.csv", "c3,2\n")
    wanted["c3"] = {"sum": 3.0}
    _run(root, SECOND, wanted)
    _leave(root, monkeypatch)


def _leave(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To Structured Streaming: the sums go on, and every file is read once."""
    _put(root, "e.csv", "c1,0.5\nc4,7\n")
    app = root / "structured.py"
    app.write_text(STRUCTURED.format(root=root))
    arguments = {"app": str(app), "master": None}
    with pytest.raises(InUse, match="seems to run"):
        floodmark.leave_dstreams(str(root / "cp"), str(root / "new"), **arguments)
    monkeypatch.setattr("floodmark.engine.dstreams.leaving.require_stopped", lambda *_: None)
    before = sorted(path.relative_to(root) for path in (root / "cp").rglob("*"))
    plan = floodmark.leave_dstreams(str(root / "cp"), str(root / "new"), **arguments)
    assert plan.plan.verb == "leave-dstreams"
    assert not (root / "new").exists()
    floodmark.leave_dstreams(str(root / "cp"), str(root / "new"), execute=True, **arguments)
    assert sorted(path.relative_to(root) for path in (root / "cp").rglob("*")) == before
    for expected in ({"c1": 12.5, "c2": 10.5, "c3": 3.0, "c4": 7.0}, {"c1": 13.5}):
        floodmark.run(f"{app}:totals", available_now=True)
        rows = json.loads((root / "structured.json").read_text())
        assert rows.items() >= expected.items()
        _put(root, "f.csv", "c1,1\n")


def test_a_start_that_takes_long_is_not_waited_for() -> None:
    go_on = threading.Event()
    starting = Starting(go_on.wait)
    assert not starting.is_over(0.01)
    go_on.set()
    assert starting.is_over(60)

    def fail() -> None:
        raise ValueError("no such folder")

    with pytest.raises(ValueError, match="no such folder"):
        Starting(fail).is_over(60)


def test_a_start_that_fails_between_two_looks_is_no_good_start() -> None:
    starting = Starting(lambda: None)

    class Thread:
        def join(self, seconds: float) -> None: ...

        def is_alive(self) -> bool:
            starting._error = ValueError("no such folder")
            return False

    starting._thread = Thread()  # type: ignore[assignment]
    with pytest.raises(ValueError, match="no such folder"):
        starting.is_over(0)


def test_a_context_that_does_not_end_without_grace_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A start that still plans holds the lock that Spark's stop waits for."""
    planned = threading.Event()
    monkeypatch.setattr("floodmark.engine.dstreams.runtime._END_SECONDS", 0.05)
    run = _Run.__new__(_Run)
    run._stop, run.held = StopSignals(), False
    context = SimpleNamespace(stop=lambda **_: planned.wait())
    ending = threading.Thread(target=run._end, args=(context, False), daemon=True)
    ending.start()
    ending.join(10)
    waits = ending.is_alive()
    planned.set()
    assert not waits
    assert run.held


class _Spark:
    """What a run asks of Spark while it waits for batches."""

    def __init__(self) -> None:
        self.jobs, self.tasks, self.done, self.alive = [7], 0, 3, True
        loop = SimpleNamespace(isActive=lambda: self.alive)
        scheduler = SimpleNamespace(eventProcessLoop=lambda: loop)
        java = SimpleNamespace(dagScheduler=lambda: scheduler)
        tracker = SimpleNamespace(
            getActiveJobsIds=lambda: self.jobs,
            getActiveStageIds=lambda: [11, 12],
            getStageInfo=lambda stage: self._stage() if stage == 11 else None,
        )
        self.sparkContext = SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: java), statusTracker=lambda: tracker
        )

    def _stage(self) -> Any:
        return SimpleNamespace(stageId=11, numCompletedTasks=self.done, numActiveTasks=self.tasks)


def _said_of(spark: _Spark, clock: Iterator[float], looks: int) -> list[str]:
    standstill = Standstill(spark, lambda: next(clock))
    return [words for _ in range(looks) if (words := standstill.words())]


def test_a_batch_that_waits_for_tasks_that_never_run_is_said_once() -> None:
    spark = _Spark()
    [words] = _said_of(spark, itertools.count(0, 5), 60)
    assert words.startswith("no task has run for 60 s, though a batch's job waits for one")
    assert "--conf spark.driver.extraJavaOptions=-Xss64m" in words
    spark.tasks = 1
    assert _said_of(spark, itertools.count(0, 5), 60) == []
    spark.tasks, spark.jobs = 0, []  # a function that waits for something else than Spark
    assert _said_of(spark, itertools.count(0, 5), 60) == []

    def going_on() -> Iterator[float]:
        for now in range(0, 300, 5):
            spark.done = now // 50
            yield now

    spark.jobs = [7]
    assert _said_of(spark, going_on(), 55) == []
    assert _said_of(SimpleNamespace(), itertools.count(0, 5), 60) == []  # type: ignore[arg-type]


def test_a_scheduler_that_has_died_ends_the_run() -> None:
    spark = _Spark()
    standstill = Standstill(spark, partial(next, itertools.count(0, 10)))
    assert standstill.words() is None
    spark.alive = False
    assert standstill.words() is None
    with pytest.raises(SchedulerDied, match="no job can run any more") as died:
        standstill.words()
    assert sentence_of(died.value) == str(died.value)
    assert not is_outage(str(died.value))


@pytest.mark.parametrize(
    ("batch", "interval"), [(500, 10_000), (1_000, 10_000), (2_000, 10_000), (5_000, 25_000)]
)
def test_the_rule_of_the_interval(batch: int, interval: int) -> None:
    assert state_interval(batch) == interval
    assert interval % batch == 0


@pytest.mark.parametrize("told", ["3s", "1s", "4500ms"])
def test_an_interval_that_is_no_multiple(told: str) -> None:
    with pytest.raises(WrongUse, match="not a multiple of 2 s"):
        dstream(checkpoint="cp", batch="2s", save_state=told)


@pytest.mark.parametrize("text", ["", "5", "-1s", "0s", "1 day", "s", "1e3s"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(WrongUse):
        milliseconds_of(text, "batch")
    assert milliseconds_of(5, "batch") == 5_000
    assert milliseconds_of("2min", "batch") == 120_000


def test_a_dstream_without_checkpoint_or_argument() -> None:
    with pytest.raises(WrongUse, match="no checkpoint"):
        dstream(checkpoint="", batch="5s")
    with pytest.raises(WrongUse, match="has no parameter"):
        dstream(checkpoint="cp", batch="5s")(lambda: None)


def test_a_new_context_is_later_than_every_checkpoint_that_is_there() -> None:
    """Spark recovers the newest by its time, and that has to be the new one."""
    newest = int(time.time() * 1000) + 300
    assert newest < _zero_after(newest, 200) <= int(time.time() * 1000)
    assert _zero_after(-1, 500) % 500 == 0
    with pytest.raises(WouldLose, match="seconds in the future"):
        _zero_after(newest + 3_600_000, 500)


def test_which_files_a_state_holds() -> None:
    stream = DStream(
        "FileInputDStream",
        files={1000: ("a",), 2000: ("b",), 3000: ("c", "gone")},
        directory="/in",
        remembers_ms=2_000,
        ignores_before_ms=0,
    )
    listed = [("old", 500), ("a", 900), ("b", 1_900), ("c", 2_900), ("late", 2_950), ("new", 9_000)]
    found = input_files(stream, 2_000, 3_000, listed)
    assert found.unread == ("c", "late", "new")
    assert found.read == ("a", "b", "old")
    assert found.gone == ("gone",)
    assert found.ignores_before_ms == 1_000
    assert found.newer_read == ("b",)
    # As of an earlier state, what is older than the stream remembers is read all the same.
    earlier = input_files(stream, 1_000, 3_000, listed)
    assert earlier.unread == ("b", "c", "late", "new")
    assert "old" in earlier.read
    assert earlier.ignores_before_ms == 1_000


def test_options_of_dstreams_are_for_dstreams(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text("from floodmark import pipeline\n")
    with pytest.raises(FloodmarkError, match="declares no DStreams"):
        floodmark.run(str(app), fresh_with_state=True)


@pytest.mark.spark
def test_a_loop_keeps_its_lineage_short(spark: Any, tmp_path: Path) -> None:
    spark.sparkContext.setCheckpointDir(str(tmp_path / "saved"))
    said: list[str] = []
    cut = floodmark.truncate_lineage(every=4, keep=2, say=said.append)
    numbers = spark.sparkContext.parallelize(range(10), 2)
    depths = []
    for _ in range(16):
        numbers = cut(numbers.map(lambda n: n + 1))
        depths.append(cut.depth)
    assert numbers.sum() == sum(range(16, 26))
    assert max(depths) < 16
    assert len(said) == 4
    assert len(cut.saved) == 2
    folders = [path for path in (tmp_path / "saved").rglob("rdd-*") if path.is_dir()]
    assert len(folders) == 2

    _two_loops(spark)
    _computed_once(spark)
    frame = spark.range(10).toDF("n")
    cut = floodmark.truncate_lineage(every=3)
    for _ in range(9):
        frame = cut(frame.selectExpr("n + 1 AS n"))
    assert frame.agg({"n": "sum"}).first()[0] == sum(range(9, 19))
    assert len(cut.saved) == 2
    with pytest.raises(WrongUse, match="got a int"):
        cut(3)
    with pytest.raises(WrongUse, match="numbers from 1 on"):
        floodmark.truncate_lineage(every=0)


class _Rdd:
    """What a cut asks of an RDD."""

    def __init__(self, saved: list[str]) -> None:
        self._saved = saved
        self._jrdd = self
        self.context = SimpleNamespace(getCheckpointDir=lambda: "/saved")

    def rdd(self) -> Any:
        return self

    def toDebugString(self) -> str:  # noqa: N802
        return "(2) PythonRDD[1]"

    def getStorageLevel(self) -> Any:  # noqa: N802
        return SimpleNamespace(useMemory=True, useDisk=False)

    def checkpoint(self) -> None:
        self._saved.append(threading.current_thread().name)

    def count(self) -> None: ...

    def getCheckpointFile(self) -> str:  # noqa: N802
        return "/saved/rdd-1"


def test_threads_that_run_one_loop_are_each_cut() -> None:
    """In turn, every second call is the other thread's: its data alone would be cut."""
    cut = floodmark.truncate_lineage(every=2, keep=9)
    saved: list[str] = []
    turns = [threading.Semaphore(1), threading.Semaphore(0)]

    def loop(own: int) -> None:
        for _ in range(4):
            assert turns[own].acquire(timeout=60)
            cut(_Rdd(saved))
            turns[1 - own].release()

    threads = [threading.Thread(target=loop, args=(at,), name=f"loop {at}") for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(saved) == ["loop 0", "loop 0", "loop 1", "loop 1"]


def _computed_once(spark: Any) -> None:
    """Neither the look at a frame's lineage nor the cut runs what the other has run."""
    from pyspark.sql.functions import udf

    calls = spark.sparkContext.accumulator(0)

    def count(number: int) -> int:
        calls.add(1)
        return number

    counted = udf(count, "long", useArrow=False)
    cut = floodmark.truncate_lineage(every=2)
    frame = spark.range(10).select(counted("id").alias("n"))
    seen = []
    for _ in range(2):
        frame = cut(frame.groupBy("n").count().select("n"))
        seen.append((calls.value, cut.depth))
    assert [called for called, _ in seen] == [0, 10]
    assert seen[0][1] > 2
    assert seen[1][1] == 1
    assert frame.count() == 10
    assert calls.value == 10


def _two_loops(spark: Any) -> None:
    """They start from one RDD: each is cut on schedule, and keeps its own copies."""
    cut = floodmark.truncate_lineage(every=2, keep=1)
    up = down = spark.sparkContext.parallelize(range(10), 2)
    depths = []

    def next_of(data: Any, by: int) -> Any:
        return cut(data.map(lambda n, by=by: n + by))

    for _ in range(6):
        up = cut(up.map(lambda n: n + 1))
        depths.append(cut.depth)
        down = cut(down.map(lambda n: n - 1))
        depths.append(cut.depth)
    assert max(depths) < 6
    assert cut.steps == 6
    assert (up.sum(), down.sum()) == (sum(range(6, 16)), sum(range(-6, 4)))
    for _ in range(2):
        up = next_of(up, 1)
        down = next_of(down, -1)
    assert cut.steps == 2
    assert (up.sum(), down.sum()) == (sum(range(8, 18)), sum(range(-8, 2)))
    assert all(one.isCheckpointed() for one in (up, down))


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_batch_that_fails_is_run_again_in_a_new_process(tmp_path: Path) -> None:
    """A record that cannot be read; it is corrected while the run waits to start again."""
    (tmp_path / "in").mkdir()
    app = tmp_path / "app.py"
    app.write_text(APP.format(update=FIRST, root=tmp_path))
    said = (tmp_path / "said").open("w")
    command = [sys.executable, "-m", "floodmark", "run", str(app), "--restart", "on-failure"]
    run = subprocess.Popen(command, stdout=said, stderr=said)

    def wait_for(what: Callable[[], bool]) -> None:
        until = time.monotonic() + 300
        while not what():
            assert run.poll() is None, (tmp_path / "said").read_text()[-3000:]
            assert time.monotonic() < until, (tmp_path / "said").read_text()[-3000:]
            time.sleep(0.2)

    def totals() -> Any:
        file = tmp_path / "totals.json"
        return json.loads(file.read_text()) if file.exists() else None

    try:
        wait_for(lambda: totals() == {})
        _put(tmp_path, "1.csv", "a,1\n")
        wait_for(lambda: totals() == {"a": 1.0})
        _put(tmp_path, "2.csv", "a,much\n")
        wait_for(lambda: "starts again in" in (tmp_path / "said").read_text())
        told = (tmp_path / "said").read_text()
        assert "failed: ValueError: could not convert string to float: 'much'" in told
        (tmp_path / "in" / "2.csv").write_text("a,2\n")
        wait_for(lambda: totals() == {"a": 3.0})
        run.terminate()
        assert run.wait(300) == 0
    finally:
        run.kill()
        run.wait()
        said.close()


HELD = """
import json, os, time
from floodmark import dstream

def update(found, old):
    return (old or 0) + sum(found)

def show(batch, totals):
    found = dict(totals.collect())
    while os.path.exists("hold"):
        open("held", "w").close()
        time.sleep(0.05)
    with open("totals.tmp", "w") as out:
        json.dump(found, out)
    os.replace("totals.tmp", "totals.json")

@dstream(checkpoint="cp", batch="500ms", save_state="1s")
def sums(ssc):
    rows = ssc.textFileStream("{root}/in").map(lambda line: line.split(","))
    rows.map(lambda row: (row[0], int(row[1]))).updateStateByKey(update, 2).foreachRDD(show)
"""


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_jvm_dies_and_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "app.py").write_text(HELD.format(root=tmp_path))
    totals, hold, held = (tmp_path / name for name in ("totals.json", "hold", "held"))

    def is_sum(wanted: dict[str, int]) -> Callable[[], bool]:
        return lambda: totals.exists() and json.loads(totals.read_text()) == wanted

    def hold_a_batch(name: str, driver: Driver) -> None:
        held.unlink(missing_ok=True)
        hold.touch()
        _put(tmp_path, name, "a,2\n")
        driver.until(held.exists)

    run = ("run", "app.py", "--conf", "spark.ui.enabled=false", "--restart", "on-failure")
    first = Driver(*run, cwd=tmp_path)
    begun = [first]
    try:
        first.until(is_sum({}))
        _put(tmp_path, "1.csv", "a,1\n")
        first.until(is_sum({"a": 1}))
        hold_a_batch("2.csv", first)
        os.kill(first.jvm(), signal.SIGKILL)
        hold.unlink()
        first.until(is_sum({"a": 3}))  # in a new process, with a new JVM
        hold_a_batch("3.csv", first)
        first.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            first.process.wait(2)  # the batch is waited for
        first.process.send_signal(signal.SIGTERM)
        status, said = first.ended()
        assert status == 0, said
        assert "the JVM was ended by SIGKILL" in said
        assert "finishing the running batches" in said
        assert "Traceback" not in said, said[max(0, said.find("Traceback") - 500) :][:3000]
        assert is_sum({"a": 3})(), "the batch was not waited for"
        assert not (tmp_path / "cp/_floodmark/lease.json").exists()
        inside = floodmark.inspect(str(tmp_path / "cp")).dstreams
        assert inside is not None
        assert inside.pending_times, "the next start runs it again"
        hold.unlink()
        begun.append(Driver(*run, cwd=tmp_path))
        begun[-1].until(is_sum({"a": 5}))
        assert begun[-1].terminate()[0] == 0
    finally:
        for driver in begun:
            driver.kill()
