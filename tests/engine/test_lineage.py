"""`truncate_lineage(data, every=N)` in a loop: on schedule, and without a cut to carry about."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import floodmark
from floodmark.engine.spark import lineage
from floodmark.errors import WrongUse

_NUMBERS = itertools.count(100)


class Store:
    """The folder for saved RDDs."""

    def __init__(self) -> None:
        self.there: list[str] = []
        self.context = SimpleNamespace(
            getCheckpointDir=lambda: "/saved",
            _jsc=SimpleNamespace(hadoopConfiguration=lambda: None),
            _jvm=SimpleNamespace(
                org=SimpleNamespace(
                    apache=SimpleNamespace(
                        hadoop=SimpleNamespace(fs=SimpleNamespace(Path=self._path))
                    )
                )
            ),
        )

    def _path(self, name: str) -> Any:
        gone = SimpleNamespace(delete=lambda path, deep: self.there.remove(name))
        return SimpleNamespace(getFileSystem=lambda conf: gone)


class Rdd:
    """As pyspark's: what is made from a saved one names its copy."""

    def __init__(self, store: Store, behind: list[str]) -> None:
        self._store, self.context = store, store.context
        self._jrdd = self
        self._behind = behind
        self._line = f"(2) PythonRDD[{next(_NUMBERS)}] at RDD at PythonRDD.scala:56 []"
        self._file = ""

    def then(self) -> Rdd:
        return Rdd(self._store, [self._line, *self._behind])

    def rdd(self) -> Rdd:
        return self

    def toDebugString(self) -> str:  # noqa: N802
        return "\n |  ".join([self._line, *self._behind])

    def getStorageLevel(self) -> Any:  # noqa: N802
        return SimpleNamespace(useMemory=True, useDisk=False)

    def checkpoint(self) -> None:
        number = next(_NUMBERS)
        self._file = f"/saved/rdd-{number}"
        self._behind = [f"ReliableCheckpointRDD[{number}] at count at Main.java:1 []"]
        self._store.there.append(self._file)

    def count(self) -> int:
        return 0

    def getCheckpointFile(self) -> str:  # noqa: N802
        return self._file


def loop(store: Store, steps: int, said: list[str] | None = None) -> Rdd:
    data = Rdd(store, [])
    for _ in range(steps):
        data = floodmark.truncate_lineage(
            data.then(), every=3, say=None if said is None else said.append
        )
    return data


@pytest.fixture(autouse=True)
def _no_loops_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "_shared", {})


def test_it_is_cut_on_schedule_and_old_copies_go() -> None:
    store, said = Store(), []
    data = loop(store, 12, said)
    assert said == [
        f"step {step}: lineage {deep} → 2" for step, deep in ((3, 4), (6, 5), (9, 5), (12, 5))
    ]
    assert len(store.there) == 2
    assert data.getCheckpointFile() == store.there[-1]


def test_a_loop_that_runs_again_leaves_the_copies_of_the_time_before() -> None:
    """The result of the first round is still in use: it lies in its copy alone."""
    store = Store()
    rounds = [loop(store, 9) for _ in range(3)]
    for data in rounds:
        assert data.getCheckpointFile() in store.there
    assert len(store.there) == 6, "two of each round"


def test_data_alone_is_cut_now() -> None:
    store = Store()
    for _ in range(2):
        data = floodmark.truncate_lineage(Rdd(store, ["a", "b"]))
        assert data.getCheckpointFile() == store.there[-1]
    assert len(store.there) == 2


@pytest.mark.parametrize("wrong", [{"every": 0}, {"every": 3, "keep": 0}])
def test_numbers_below_one(wrong: dict[str, int]) -> None:
    for data in (None, Rdd(Store(), [])):
        with pytest.raises(WrongUse, match="numbers from 1 on"):
            floodmark.truncate_lineage(data, **wrong)


@pytest.mark.spark
def test_spark_itself_goes_on_with_what_is_kept(spark: Any, tmp_path: Path) -> None:
    """The copies that the second round finds are the first one's, and stay."""
    spark.sparkContext.setCheckpointDir(str(tmp_path / "saved"))

    def frames() -> Any:
        data = spark.range(10).toDF("n")
        for _ in range(6):
            data = floodmark.truncate_lineage(data.selectExpr("n + 1 AS n"), every=2)
        return data

    def numbers() -> Any:
        data = spark.sparkContext.parallelize(range(10), 2)
        for _ in range(6):
            data = floodmark.truncate_lineage(data.map(lambda n: n + 1), every=2)
        return data

    for run, total in ((frames, "sum(n)"), (numbers, None)):
        before = _folders(tmp_path)
        rounds = [run() for _ in range(2)]
        assert len(_folders(tmp_path)) - len(before) == 4, "two of each round"
        for data in rounds:
            found = data.sum() if total is None else data.selectExpr(total).first()[0]
            assert found == sum(range(6, 16))


def _folders(place: Path) -> list[Path]:
    return [path for path in (place / "saved").rglob("rdd-*") if path.is_dir()]
