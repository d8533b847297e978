"""What can be said of a bootstrap, and of a function over state, before Spark has started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import samples
from floodmark import api
from floodmark.changes.planners.kept_operators import Drawn, Kept, kept_operators
from floodmark.checkpoint.outline import SourceOutline
from floodmark.cli.main import run
from floodmark.engine.pipelines.start_positions import parse_start
from floodmark.engine.state import bootstrap as bootstrapping
from floodmark.engine.state import migrate as migrating
from floodmark.engine.state.bootstrap import kafka_beginnings
from floodmark.engine.state.migration_file import load_migration
from floodmark.errors import FloodmarkError, NotCarried, NotEmpty, WrongUse
from floodmark.state.shapes.operators import Shape
from floodmark.storage.files import open_files
from floodmark.storage.load import load
from rules.examples import golden

TRANSFORM, JOIN = "4.2/transform-with-state", "4.2/join"


class SparkStarted(Exception):
    pass


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: Any) -> None:
        raise SparkStarted

    for module in (bootstrapping, migrating):
        monkeypatch.setattr(module, "drawing", begin)
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", ["totals.parquet", "deep/totals", "file:{here}/totals.csv"])
def test_a_missing_file_is_found_before_spark_starts(
    no_spark: None, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = name.format(here=tmp_path)
    arguments = ["bootstrap", str(tmp_path / "new"), "--app", "app.py", "--state", table]
    assert run(arguments) == 2
    told = capsys.readouterr().err
    assert "there is no such file" in told
    assert ".parquet, .json, .csv or .orc" in told
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "table",
    ["totals", "db.totals", "s3a://bucket/totals.parquet", "totals-*.parquet", "delta.`/no/such`"],
)
def test_what_only_spark_can_find_is_left_to_spark(
    no_spark: None, table: str, tmp_path: Path
) -> None:
    with pytest.raises(SparkStarted):
        api.bootstrap(str(tmp_path / "new"), app="app.py", state=table)


def test_a_path_may_be_on_the_cluster(
    no_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, state = str(tmp_path / "new"), "/no/such/totals.parquet"
    on_hdfs = ["spark.hadoop.fs.defaultFS=hdfs://name:8020"]
    with pytest.raises(SparkStarted):
        api.bootstrap(new, app="app.py", state=state, conf=on_hdfs)
    with pytest.raises(WrongUse, match="no such file"):
        api.bootstrap(new, app="app.py", state=f"file:{state}", conf=on_hdfs)
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    with pytest.raises(SparkStarted):
        api.bootstrap(new, app="app.py", state=state)


def test_a_missing_migration_is_found_before_spark_starts(no_spark: None, tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", golden("4.2/sales-hdfs"))
    missing = str(tmp_path / "MIGRATION.py")
    with pytest.raises(WrongUse, match=r"MIGRATION\.py: cannot read it"):
        api.migrate(str(tmp_path / "cp"), str(tmp_path / "new"), app="app.py", with_file=missing)


def test_a_place_in_use_is_found_before_spark_starts(no_spark: None, tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", golden("4.2/sales-hdfs"))
    new = tmp_path / "new"
    new.mkdir()
    with pytest.raises(SparkStarted):
        api.migrate(str(tmp_path / "cp"), str(new), app="app.py")
    (new / "data.csv").write_text("1\n")
    with pytest.raises(NotEmpty, match=r"it holds data\.csv"):
        api.migrate(str(tmp_path / "cp"), str(new), app="app.py")
    with pytest.raises(NotEmpty, match=r"it holds data\.csv"):
        api.bootstrap(str(new), app="app.py", state="totals")


def sources(*options: dict[str, str]) -> list[tuple[str, SourceOutline]]:
    return [(str(at), SourceOutline("kafka", one)) for at, one in enumerate(options)]


START = b'{"orders": {"0": 4, "1": 7}, "returns": {"0": 1}}'


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "orders, returns"},
        {"subscribepattern": "orders|re.*"},
        {"assign": '{"orders": [0, 1], "returns": [0]}'},
    ],
    ids=["subscribe", "pattern", "assign"],
)
def test_a_start_file_says_where_kafka_begins(options: dict[str, str]) -> None:
    start = parse_start(START, "start.json")
    every = {"orders": {"0": 4, "1": 7}, "returns": {"0": 1}}
    assert kafka_beginnings(sources(options), start) == {"0": every}


def test_each_source_begins_at_its_own_topics() -> None:
    start = parse_start(START, "start.json")
    found = kafka_beginnings(
        sources({"subscribe": "other"}, {"subscribe": "returns"}, {"subscribe": "orders"}), start
    )
    assert found == {"1": {"returns": {"0": 1}}, "2": {"orders": {"0": 4, "1": 7}}}


@pytest.mark.parametrize(
    ("options", "start", "words"),
    [
        ({"subscribe": "sales"}, START, "no source of the code reads orders, returns"),
        ({"subscribe": "orders,sales"}, START, "offsets for orders, not for sales"),
        ({"subscribe": "orders"}, b'{"orders": {"0": -2}}', "partition 0: -2 is not a position"),
        ({"subscribepattern": "(?<x>orders)["}, START, "Python does not understand it"),
    ],
    ids=["another topic", "half", "earliest", "pattern"],
)
def test_a_start_file_that_does_not_fit_is_refused(
    options: dict[str, str], start: bytes, words: str
) -> None:
    with pytest.raises(WrongUse, match=words) as refused:
        kafka_beginnings(sources(options), parse_start(start, "start.json"))
    assert refused.value.do


def test_where_delta_begins_is_said() -> None:
    delta = b'{"floodmark": "start", "version": 1, "sources": [{"kind": "delta", "version": 8}]}'
    (note,) = bootstrapping._delta_notes(parse_start(delta, "start.json"))
    assert "--start start.json" in note
    assert bootstrapping._delta_notes(parse_start(START, "start.json")) == ()


def drawn(folder: Path, name: str, **families: Shape) -> Drawn:
    """The operators of a golden checkpoint, with families of Spark's own beside its first."""
    place = samples.write(folder, golden(name))
    files = open_files(str(place))
    checkpoint = load(files)
    assert checkpoint.committed_batch is not None
    (kept,) = kept_operators(files, checkpoint, checkpoint.committed_batch)
    reading = next(one for one in kept.readings if one.shape is Shape.PAIRS)
    more = [
        replace(reading, family=f"${family}", name=f"${family}", shape=shape)
        for family, shape in families.items()
    ]
    store = kept.operator.stores[0]
    stores = (*kept.operator.stores, *(replace(store, name=f"${one}") for one in families))
    operator = replace(kept.operator, stores=stores)
    return Drawn((Kept(operator, (*kept.readings, *more), kept.partitions),), {})


CASES = [
    ("join", JOIN, {}, "", "cannot give the rows of a join", "columns are matched", "fills itself"),
    (
        "timers",
        TRANSFORM,
        {"procTimers_keyToTimestamp": Shape.TIMER, "procTimers_timestampToKey": Shape.TIMER},
        "timers",
        "is a timer, so a function cannot give its rows",
        "migrate carries it as it is",
        "initialState",
    ),
    (
        "ttl",
        TRANSFORM,
        {"ttl_total": Shape.PAIRS},
        "total",
        "total has a TTL, so a function cannot supply its rows",
        "migrate carries it and its index",
        "initialState",
    ),
]


@pytest.mark.parametrize(
    ("name", "families", "store", "words", "carry", "begin"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_rows_that_hang_together_are_refused_with_what_to_do(
    tmp_path: Path,
    name: str,
    families: dict[str, Shape],
    store: str,
    words: str,
    carry: str,
    begin: str,
) -> None:
    found = drawn(tmp_path / "cp", name, **families)
    code = tmp_path / "MIGRATION.py"
    code.write_text(f"def operator_0{store and '_' + store}(state):\n    return state\n")
    with pytest.raises(NotCarried, match=words) as migrated:
        load_migration(str(code), found)
    assert carry in (migrated.value.do or "")
    with pytest.raises(NotCarried, match=words) as begun:
        bootstrapping._place(f"0{store and '/' + store}", found)
    assert begin in (begun.value.do or "")


def test_only_the_codes_own_variables_are_offered(tmp_path: Path) -> None:
    found = drawn(tmp_path / "cp", TRANSFORM, procTimers_keyToTimestamp=Shape.TIMER)
    code = tmp_path / "MIGRATION.py"
    code.write_text("def operator_0_nosuch(state): ...\n")
    for ask in (
        lambda: load_migration(str(code), found),
        lambda: bootstrapping._place("0/nosuch", found),
    ):
        with pytest.raises(FloodmarkError, match="names no store") as refused:
            ask()
        assert "total" in refused.value.why
        assert "$" not in refused.value.why
