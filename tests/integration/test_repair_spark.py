"""Damaged, mended, and run on by Spark: the sink equals a batch query over all input, or differs
by exactly what the plan had said.

`make soak` damages every kind of file in every way; `make test` takes a selection.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carried import GO
from floodmark import api
from floodmark.changes.apply import Change
from rules.examples import Tree, read_tree
from rules.test_mutations import KINDS, damaged, kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EVERYTHING = ("repeats", "changed-files", "unchanged-query")
WRITTEN_ANEW = {"state-schema-missing", "operator-metadata-missing"}
"""Found before a start and not after: Spark writes them if the query is the same."""
SCHEMA = "customer string, amount long"
STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
ROCKSDB = {PROVIDER: f"{STATE}.RocksDBStateStoreProvider"}
CONF: dict[str, dict[str, str]] = {
    "stateless": {},
    "hdfs": {PROVIDER: f"{STATE}.HDFSBackedStateStoreProvider"},
    "rocksdb": ROCKSDB,
    "changelog": {**ROCKSDB, CHANGELOG: "true"},
    "format-2": {**ROCKSDB, CHANGELOG: "true", FORMAT: "2"},
}
BATCHES = 4
IN_A_FILE = 4


class Sink:
    """Takes a batch of a query once, as Delta does, but computes it each time."""

    def __init__(self) -> None:
        self.taken: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
        self.query = ""

    def take(self, frame: DataFrame, batch: int) -> None:
        found = [tuple(row) for row in frame.collect()]
        self.taken.setdefault((self.query, batch), found)
        self.newest = found

    def rows(self) -> Counter[tuple[Any, ...]]:
        return Counter(row for rows in self.taken.values() for row in rows)


@dataclass(frozen=True)
class Outcome:
    """What a sink had when Spark had run on: the last batch, everything, and how many records of
    the first run came again under another id.
    """

    newest: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    rows: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    again: int = 0
    error: str = ""


@dataclass
class Stream:
    spark: SparkSession
    folder: Path
    kind: str
    in_flight: bool = False
    tree: Tree = field(default_factory=dict)
    sink: Sink = field(default_factory=Sink)
    known: dict[tuple[Path, ...], Counter[tuple[Any, ...]]] = field(default_factory=dict)
    """Answers of batch queries: many cases ask the same one."""
    ran: dict[str, Outcome] = field(default_factory=dict)
    """What came of checkpoints that had these very bytes."""

    @property
    def input(self) -> Path:
        return self.folder / "in"

    @staticmethod
    def rows_of(number: int) -> list[tuple[Any, ...]]:
        """What stands in an input file."""
        return [(f"c{i % 3}", 100 * number + i) for i in range(IN_A_FILE)]

    def feed(self, number: int) -> None:
        self.input.mkdir(exist_ok=True)
        rows = [{"customer": name, "amount": amount} for name, amount in self.rows_of(number)]
        text = "\n".join(json.dumps(row) for row in rows)
        path = self.input / f"{number:03}.json"
        path.write_text(text)
        if number < BATCHES:
            # The source takes the oldest first: file N is to be what batch N reads.
            then = time.time() - 100 + number
            os.utime(path, (then, then))

    def run(self, checkpoint: Path, sink: Sink) -> int:
        """How many records were read."""
        frame = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        shaped = self.shape(frame.json(str(self.input)))
        # What Delta keys on is what stands in `metadata`; a new checkpoint has none yet.
        found = checkpoint / "metadata"
        sink.query = json.loads(found.read_text())["id"] if found.exists() else ""
        query = (
            shaped.writeStream.foreachBatch(sink.take)
            .outputMode("append" if self.kind == "stateless" else "complete")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(1200)
        assert not query.isActive
        if not sink.query:
            sink.query = str(query.id)
            sink.taken = {(sink.query, batch): rows for (_, batch), rows in sink.taken.items()}
        return sum(progress.numInputRows for progress in query.recentProgress)

    def shape(self, frame: DataFrame) -> DataFrame:
        if self.kind == "stateless":
            return frame
        return frame.groupBy("customer").sum("amount")

    def expected(self, twice: Sequence[str] = ()) -> Counter[tuple[Any, ...]]:
        """By a batch query over all input; some files may have been read twice."""
        paths = tuple(sorted(self.input.glob("*.json"))) + tuple(self.input / n for n in twice)
        if paths not in self.known:
            frame = self.spark.read.schema(SCHEMA)
            every = frame.json(str(paths[0]))
            for path in paths[1:]:
                every = every.unionAll(frame.json(str(path)))
            self.known[paths] = Counter(tuple(row) for row in self.shape(every).collect())
        return self.known[paths]

    def begin(self) -> None:
        checkpoint = self.folder / "base"
        for number in range(BATCHES):
            self.feed(number)
        self.run(checkpoint, self.sink)
        if self.in_flight:
            for name in (f"{BATCHES - 1}", f".{BATCHES - 1}.crc"):
                (checkpoint / "commits" / name).unlink()
        self.tree = read_tree(checkpoint)
        self.feed(BATCHES)


@dataclass
class Tally:
    tried: int = 0
    found: int = 0
    repaired: int = 0
    not_repairable: list[str] = field(default_factory=list)
    risky: int = 0
    alike: int = 0
    """Repaired to bytes that Spark had already run on from."""
    wrong: list[str] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)

    @contextlib.contextmanager
    def timed(self, what: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - begun


def chosen_files(tree: Tree) -> list[str]:
    """Of each kind of file the newest, and one before it."""
    by_kind: dict[tuple[str, int], list[str]] = {}
    for path in sorted(tree, key=lambda path: [int(n) for n in re.findall(r"\d+", path)]):
        by_kind.setdefault((kind_of(path), path.count("/")), []).append(path)
    return [path for paths in by_kind.values() for path in paths[-2:]]


def mutations(
    tree: Tree, name: str, paths: Iterable[str] | None = None
) -> Iterator[tuple[str, str, Tree]]:
    for path in chosen_files(tree) if paths is None else paths:
        for how in KINDS:
            after = damaged(tree, path, how, random.Random(f"{name} {path} {how}"))
            if after == tree[path]:
                continue
            changed = {other: data for other, data in tree.items() if other != path}
            if after is not None:
                changed[path] = after
            yield path, how, changed


@dataclass(frozen=True)
class Stated:
    """What a plan says may be read twice: how many files, and of which batches."""

    to_sink: tuple[int, ...] = ()
    to_stream: int = 0

    @staticmethod
    def by(change: Change) -> Stated:
        batches: set[int] = set()
        to_stream = 0
        for item in change.plan.options["repeats"]:
            assert (item["source"], item["unit"]) == ("0", "files"), item
            if item["reaches"] == "stream":
                to_stream += item["at_most"]
            else:
                batches |= set(item["batches"])
                # Each batch took one file. Where a batch's entry is lost, a file that was listed
                # for the batch after it cannot be told from its own.
                assert len(item["batches"]) <= item["at_most"] <= len(item["batches"]) + 1, item
        return Stated(tuple(sorted(batches)), to_stream)


def forgotten(before: Tree, after: Path) -> list[str]:
    """The input files of committed batches that the source's list no longer names, though the
    logs do not go back behind them.
    """
    offsets = [int(p.name) for p in (after / "offsets").iterdir() if p.name.isdecimal()]
    newest = json.loads((after / "offsets" / str(max(offsets))).read_text().split("\n")[2])
    lists = (after / "sources" / "0").iterdir()
    named = "\n".join(p.read_text() for p in lists if not p.name.startswith("."))
    return [
        f"{number:03}.json"
        for number in range(newest["logOffset"] + 1)
        if f"sources/0/{number}" in before and f"/in/{number:03}.json" not in named
    ]


def prove(stream: Stream, what: str, changed: Tree, tally: Tally) -> None:
    """Damage → doctor → repair → Spark → oracle."""
    place = stream.folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    for path, data in changed.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    tally.tried += 1
    with tally.timed("doctor"):
        findings = api.doctor(str(place), 1.0)
    if not findings:
        return
    tally.found += 1
    claimed = [item for item in findings if item.repairable]
    if len(claimed) < len(findings):
        tally.not_repairable.append(f"{what}: {', '.join(i.rule for i in findings)}")
        if not claimed:
            return
    with tally.timed("repair"):
        change = api.repair(str(place), accept=EVERYTHING, read_data=True, carrying=GO)
        left = api.doctor(str(place), 1.0)
    if any(item.repairable for item in left):
        tally.wrong.append(f"{what}: still {[(i.rule, i.path) for i in left]}")
        return
    if {item.rule for item in left} - WRITTEN_ANEW:
        return
    tally.repaired += 1
    problem = run_on(stream, place, change, tally)
    if problem:
        print(f"  WRONG: {what}: {problem}", flush=True)
        tally.wrong.append(f"{what}: {problem}")
    tally.risky += bool(change.plan.options["needs_accepted"])


def run_on(stream: Stream, place: Path, change: Change, tally: Tally) -> str | None:
    """None, or how the sink differs from a batch query by something else than was stated."""
    stated = Stated.by(change)
    twice = forgotten(stream.tree, place)
    if len(twice) != stated.to_stream:
        return f"the list lost {twice}, and the plan said {stated.to_stream}"
    content = digest(stream, place)
    if content in stream.ran:
        tally.alike += 1
    else:
        with tally.timed("Spark"):
            stream.ran[content] = outcome(stream, place)
    came = stream.ran[content]
    if came.error:
        return f"Spark failed: {came.error}"
    if stream.kind != "stateless":
        expected = stream.expected(twice)
        if came.newest != expected:
            return f"{came.newest} is not {expected}"
        if came.again not in (IN_A_FILE * number for number in numbers(stream, stated)):
            return f"{came.again} records came again, and the plan stated batches {stated.to_sink}"
        return None
    expected = stream.expected()
    if expected - came.rows:
        return f"lost: {expected - came.rows}"
    extra = Counter(row for batch in stated.to_sink for row in stream.rows_of(batch))
    extra += Counter(row for name in twice for row in stream.rows_of(int(name[:3])))
    in_flight = Counter(stream.rows_of(BATCHES - 1)) if may_be_new(stream, stated) else Counter()
    if came.rows - expected not in (extra, extra - in_flight):
        return f"repeated: {came.rows - expected}, and the plan stated {extra}"
    return None


def may_be_new(stream: Stream, stated: Stated) -> bool:
    """Where commits were lost, nothing tells whether the newest batch had its own. The plan says
    that it may have had; a stream in flight had not.
    """
    return stream.in_flight and BATCHES - 1 in stated.to_sink


def numbers(stream: Stream, stated: Stated) -> tuple[int, ...]:
    """How many batches may come again, by what the plan states."""
    stated_batches = len(stated.to_sink)
    return (stated_batches, stated_batches - may_be_new(stream, stated))


def digest(stream: Stream, place: Path) -> str:
    """Of a checkpoint's bytes. Of the query's id it matters only whether it is a new one."""
    found = hashlib.sha256()
    for path, data in sorted(read_tree(place).items()):
        if path == "metadata":
            data = b"same id" if data == stream.tree[path] else b"another id"
        if path != ".metadata.crc" and not path.startswith("_floodmark/"):
            found.update(f"{path} {len(data)} ".encode() + data)
    return found.hexdigest()


def outcome(stream: Stream, place: Path) -> Outcome:
    sink = Sink()
    sink.taken = dict(stream.sink.taken)
    try:
        read = stream.run(place, sink)
    except Exception as error:
        return Outcome(error=str(error)[:300] or repr(error))
    again = 0 if sink.query == stream.sink.query else read - IN_A_FILE
    return Outcome(Counter(sink.newest), sink.rows(), again)


def campaign(stream: Stream, cases: Iterator[tuple[str, str, Tree]]) -> Tally:
    tally = Tally()
    for path, how, changed in cases:
        prove(stream, f"{path} {how}", changed, tally)
    print(
        f"\n{stream.kind}{' in flight' * stream.in_flight}: tried {tally.tried}, found "
        f"{tally.found}, repaired and run on {tally.repaired} (of them accepted by name "
        f"{tally.risky}, mended to the very bytes of another case {tally.alike}), "
        f"not repairable {len(tally.not_repairable)}; seconds "
        + ", ".join(f"{what} {spent:.0f}" for what, spent in tally.seconds.items())
    )
    for line in sorted(tally.not_repairable):
        print(f"  not repairable: {line}")
    return tally


@pytest.fixture
def begun(spark: SparkSession, tmp_path: Path) -> Any:
    before: dict[str, str | None] = {}

    def begin(kind: str, in_flight: bool = False) -> Stream:
        for key, value in CONF[kind].items():
            before.setdefault(key, spark.conf.get(key, None))
            spark.conf.set(key, value)
        stream = Stream(spark, tmp_path, kind, in_flight)
        stream.begin()
        return stream

    yield begin
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("in_flight", [False, True], ids=["committed", "in-flight"])
@pytest.mark.parametrize("kind", CONF)
def test_every_damage(kind: str, in_flight: bool, begun: Any) -> None:
    stream = begun(kind, in_flight)
    tally = campaign(stream, mutations(stream.tree, kind))
    assert tally.wrong == []
    assert tally.repaired > 20


CHOSEN = {
    "stateless": [("offsets/3", "cut"), ("commits/3", "empty"), ("sources/0/3", "empty")],
    "hdfs": [("state/0/1/4.delta", "missing"), ("offsets/2", "missing"), ("metadata", "empty")],
    "rocksdb": [("state/0/1/4.zip", "cut")],
    "format-2": [("commits/3", "cut"), ("offsets/3", "missing")],
}


@pytest.mark.parametrize("kind", CHOSEN)
def test_a_selection_of_damage(kind: str, begun: Any) -> None:
    stream = begun(kind)
    chosen = set(CHOSEN[kind])
    cases = (
        case
        for case in mutations(stream.tree, kind, sorted({path for path, _ in chosen}))
        if case[:2] in chosen
    )
    tally = campaign(stream, cases)
    assert tally.wrong == []
    assert tally.repaired == len(chosen), (tally, sorted(stream.tree))


def test_a_compacted_checkpoint_goes_on(begun: Any) -> None:
    """Twelve batches: the file source's log has been compacted, and snapshots share tables."""
    stream = begun("rocksdb")
    place = stream.folder / "base"
    for number in range(BATCHES + 1, 12):
        stream.feed(number)
    stream.run(place, stream.sink)
    change = api.compact(str(place), keep=2, carrying=GO)
    gone = {step.path for step in change.plan.steps}
    assert {"offsets/8", "commits/8", "sources/0/8", "state/0/0/9.zip"} <= gone
    assert any("/SSTs/" in path for path in gone)
    assert api.doctor(str(place), 1.0) == ()
    stream.feed(12)
    stream.run(place, stream.sink)
    assert Counter(stream.sink.newest) == stream.expected()
    api.rewind(str(place), to_batch=10, carrying=GO)
    stream.run(place, stream.sink)
    assert Counter(stream.sink.newest) == stream.expected()


def to_delta(stream: Stream, checkpoint: Path) -> list[tuple[Any, ...]]:
    """Runs until all input is read; what the table then holds."""
    frame = stream.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    query = (
        stream.shape(frame.json(str(stream.input)))
        .withColumnRenamed("sum(amount)", "total")
        .writeStream.format("delta")
        .outputMode("append" if stream.kind == "stateless" else "complete")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(stream.folder / "out"))
    )
    query.awaitTermination(300)
    assert not query.isActive
    rows = stream.spark.read.format("delta").load(str(stream.folder / "out")).collect()
    return [tuple(row) for row in rows]


def test_the_lost_id_comes_back_from_the_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    """Under another id, Delta would take the batch in flight a second time."""
    stream = Stream(spark, tmp_path, "stateless")
    place = tmp_path / "cp"
    for number in range(2):
        stream.feed(number)
    to_delta(stream, place)
    for name in ("commits/1", "commits/.1.crc", "metadata", ".metadata.crc"):
        (place / name).unlink()
    change = api.repair(str(place), sink=str(tmp_path / "out"), carrying=GO)
    assert change.plan.options["needs_accepted"] == []
    stream.feed(2)
    assert Counter(to_delta(stream, place)) == stream.expected()


def test_lost_state_is_computed_again_though_delta_has_the_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Under the same id, Delta would skip the batch, and its state would never be written."""
    stream = Stream(spark, tmp_path, "hdfs")
    place = tmp_path / "cp"
    for number in range(3):
        stream.feed(number)
    to_delta(stream, place)
    for partition in range(2):
        (place / f"state/0/{partition}/3.delta").unlink()
    api.repair(str(place), accept=EVERYTHING, sink=str(tmp_path / "out"), carrying=GO)
    stream.feed(3)
    assert Counter(to_delta(stream, place)) == stream.expected()
