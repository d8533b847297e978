"""Damaged, mended, and run on by Spark: the sink equals a batch query over all input, or differs
by exactly what the plan had said.

`make soak` damages every kind of file in every way; `make test` takes a selection.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark import api
from floodmark.changes.use import Clock
from floodmark.changes.verbs import Carrying, Change
from rules.examples import Tree, read_tree
from rules.test_mutations import KINDS, damaged, kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))
EVERYTHING = ("repeats", "changed-files")
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


@dataclass
class Stream:
    spark: SparkSession
    folder: Path
    kind: str
    in_flight: bool = False
    tree: Tree = field(default_factory=dict)
    sink: Sink = field(default_factory=Sink)

    @property
    def input(self) -> Path:
        return self.folder / "in"

    def feed(self, number: int) -> None:
        self.input.mkdir(exist_ok=True)
        rows = [{"customer": f"c{i % 3}", "amount": 100 * number + i} for i in range(4)]
        text = "\n".join(json.dumps(row) for row in rows)
        (self.input / f"{number:03}.json").write_text(text)

    def run(self, checkpoint: Path, sink: Sink) -> None:
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
        query.awaitTermination(300)
        assert not query.isActive
        if not sink.query:
            sink.query = str(query.id)
            sink.taken = {(sink.query, batch): rows for (_, batch), rows in sink.taken.items()}

    def shape(self, frame: DataFrame) -> DataFrame:
        if self.kind == "stateless":
            return frame
        return frame.groupBy("customer").sum("amount")

    def expected(self, twice: list[str]) -> Counter[tuple[Any, ...]]:
        """Over all input; some files may have been read twice."""
        paths = [*sorted(self.input.glob("*.json")), *(self.input / name for name in twice)]
        frame = self.spark.read.schema(SCHEMA)
        every = frame.json(str(paths[0]))
        for path in paths[1:]:
            every = every.unionAll(frame.json(str(path)))
        return Counter(tuple(row) for row in self.shape(every).collect())

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
    wrong: list[str] = field(default_factory=list)


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


def lost_files(before: Tree, after: Path) -> list[str]:
    """The input files that the source's list no longer names."""

    def named(entries: Any) -> set[str]:
        text = "\n".join(entries)
        return {part.split('"')[0] for part in text.split("/in/")[1:]}

    old = named(
        d.decode() for p, d in before.items() if p.startswith("sources/0/") and "/." not in p
    )
    new = named(
        p.read_text() for p in (after / "sources" / "0").iterdir() if not p.name.startswith(".")
    )
    return sorted(old - new)


def prove(stream: Stream, what: str, changed: Tree, tally: Tally) -> None:
    """Damage → doctor → repair → Spark → oracle."""
    place = stream.folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    for path, data in changed.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    tally.tried += 1
    findings = api.doctor(str(place), 1.0)
    if not findings:
        return
    tally.found += 1
    claimed = [item for item in findings if item.repairable]
    if len(claimed) < len(findings):
        tally.not_repairable.append(f"{what}: {', '.join(i.rule for i in findings)}")
        if not claimed:
            return
    change = api.repair(str(place), accept=EVERYTHING, read_data=True, carrying=GO)
    left = api.doctor(str(place), 1.0)
    if any(item.repairable for item in left):
        tally.wrong.append(f"{what}: still {[(i.rule, i.path) for i in left]}")
        return
    if left:
        return
    tally.repaired += 1
    problem = run_on(stream, place, change)
    if problem:
        tally.wrong.append(f"{what}: {problem}")
    tally.risky += bool(change.plan.options["needs_accepted"])


def run_on(stream: Stream, place: Path, change: Change) -> str | None:
    sink = Sink()
    sink.taken = dict(stream.sink.taken)
    twice = lost_files(stream.tree, place)
    needed = change.plan.options["needs_accepted"]
    try:
        stream.run(place, sink)
    except Exception as error:
        return f"Spark failed: {str(error)[:300]}"
    if stream.kind != "stateless":
        expected = stream.expected(twice)
        if twice and "repeats" not in needed:
            return f"files are read twice and nothing said so: {twice}"
        # Files of a batch that was never committed may come only once after all.
        right = [expected, stream.expected([])] if stream.in_flight else [expected]
        return None if Counter(sink.newest) in right else f"{sink.newest} is not {expected}"
    found, expected = sink.rows(), stream.expected([])
    if expected - found:
        return f"lost: {expected - found}"
    extra = found - expected
    if extra and "repeats" not in needed:
        return f"repeated, and nothing said so: {extra}"
    return None


def campaign(stream: Stream, cases: Iterator[tuple[str, str, Tree]]) -> Tally:
    tally = Tally()
    for path, how, changed in cases:
        prove(stream, f"{path} {how}", changed, tally)
    print(
        f"\n{stream.kind}{' in flight' * stream.in_flight}: tried {tally.tried}, found "
        f"{tally.found}, repaired and run on {tally.repaired} (of them accepted by name "
        f"{tally.risky}), not repairable {len(tally.not_repairable)}"
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
    print("\n".join(f"  WRONG: {line}" for line in tally.wrong))
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
    assert Counter(stream.sink.newest) == stream.expected([])
    api.rewind(str(place), to_batch=10, carrying=GO)
    stream.run(place, stream.sink)
    assert Counter(stream.sink.newest) == stream.expected([])


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
    assert Counter(to_delta(stream, place)) == stream.expected([])


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
    assert Counter(to_delta(stream, place)) == stream.expected([])
