"""`migrate` without Spark: what new code keeps is given, all else is as it is on storage."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from changes_crashing import Killed, dying

from carried import GO
from drawn_code import COUNT, SALES, WIDER, drawn, planned
from floodmark import api
from floodmark.changes.apply import places_of
from floodmark.changes.carry.origin import open_origin
from floodmark.changes.carry.resume_point import UpgradeOptions
from floodmark.changes.execute import carry_out
from floodmark.changes.fingerprint import BLOCK
from floodmark.changes.matching.fields import ColumnOptions
from floodmark.changes.matching.operators import MatchOptions
from floodmark.changes.matching.skeleton import render_skeleton
from floodmark.changes.plan import Plan, seal
from floodmark.changes.plan.saved import save_plan
from floodmark.changes.plan.steps import RewriteState
from floodmark.changes.planners.kept_operators import Drawn, kept_operators
from floodmark.changes.planners.migrate import Migration, plan_migrate
from floodmark.changes.planners.state_layout import StateLayout
from floodmark.changes.state_rewriter import StateRewriter
from floodmark.checkpoint.commits import parse_commit
from floodmark.errors import StoppedMidway, WrongUse
from floodmark.state.keys.grouping import grouping_of
from floodmark.state.shapes.operators import Reading
from floodmark.statestore.open import open_state
from floodmark.statestore.rewrite.spread import BY_ALL_KEYS
from floodmark.statestore.rewrite.target import Part
from floodmark.statestore.view import StateView
from floodmark.storage.files import open_files
from floodmark.storage.load import load
from plan_trees import plan

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name: str, folder: Path) -> str:
    return str(shutil.copytree(GOLDEN / name / "checkpoint", folder / "cp"))


def go(plan: Plan, rewriter: StateRewriter | None = None) -> None:
    carry_out(plan, places_of(plan, None), clock=GO.clock, rewriter=rewriter or StateRewriter())


def rows(location: str, batch: int | None = None) -> dict[str, Any]:
    files = open_files(location)
    view = open_state(files, load(files), batch=batch)
    return {str(row["key"]): row["value"] for row in view.rows()}


@pytest.mark.parametrize(
    "name",
    [
        "3.5/sales-hdfs",
        "3.5/sales-rocksdb",
        "4.0/sales-rocksdb",
        "4.2/sales-hdfs",
        "4.2/sales-changelog",
        "4.2/sales-format-2",
        "4.2/sales-row-checksum",
        "4.3/sales-rocksdb",
    ],
)
def test_every_row_is_there_in_the_new_columns(name: str, tmp_path: Path) -> None:
    old, new = golden(name, tmp_path), str(tmp_path / "new")
    before = rows(old)
    assert before
    go(planned(old, new, WIDER))
    assert rows(new) == {key: {"max": None, **value} for key, value in before.items()}
    one, two = api.inspect(old), api.inspect(new)
    assert (two.query_id, two.committed_batch) == (one.query_id, one.committed_batch)
    assert two.sources == one.sources
    assert not [finding for finding in api.doctor(new) if finding.severity == "error"]


STATEFUL = sorted(
    path.parents[1]
    for path in GOLDEN.glob("*/*/checkpoint/state")
    if list((path.parent / "commits").glob("[0-9]*"))
)


def _id(value: Any) -> str:
    return f"{value.parent.name}-{value.name}" if isinstance(value, Path) else str(value or "as is")


@pytest.mark.parametrize(
    ("cp", "partitions"),
    [(cp, None) for cp in STATEFUL] + [(cp, 3) for cp in STATEFUL if cp.parent.name == "4.2"],
    ids=_id,
)
def test_code_that_keeps_the_same_finds_the_same(
    cp: Path, partitions: int | None, tmp_path: Path
) -> None:
    """Every operator, provider and Spark there is: decoded, encoded, and every row as it was."""
    old, new = str(cp / "checkpoint"), str(tmp_path / "new")
    origin = open_origin(open_files(old), old)
    after = origin.checkpoint.committed_batch
    assert after is not None
    kept = kept_operators(origin.files, origin.checkpoint, after)
    describing = {
        path: origin.read(path)
        for path in origin.sizes
        if path.startswith("state/") and {"_metadata", "_stateSchema"} & set(path.split("/"))
    }
    migration = Migration(
        MatchOptions(accept=frozenset({BY_ALL_KEYS})), layout=StateLayout(partitions)
    )
    plan = plan_migrate(origin, new, UpgradeOptions(), migration, kept, Drawn(kept, describing))
    go(seal(plan))
    one, two = (load(open_files(place)) for place in (old, new))
    for operator in kept:
        for reading in operator.readings:
            views = [
                open_state(open_files(place), checkpoint, operator.operator.number, reading.name)
                for place, checkpoint in ((old, one), (new, two))
            ]
            assert _values(views[1]) == _values(views[0])
            if partitions is not None:
                _require_at_home(views[1], partitions)


def _values(view: StateView) -> list[str]:
    return sorted(repr((row["key"], row["value"])) for row in view.rows())


def _require_at_home(view: StateView, partitions: int) -> None:
    """Every row lies where Spark will look for it."""
    grouping = grouping_of(view.reading)
    count = 1 if grouping.is_keyless else partitions
    for at in range(count):
        with view.at.open(at) as opened:
            layout = view.layout(opened)
            for records in opened.records():
                keys, _ = layout.decode(records)
                if len(keys) and not grouping.is_keyless:
                    homes = grouping.hashes(keys).view("i4").astype("i8") % count
                    assert set(homes.tolist()) == {at}


@pytest.mark.parametrize("name", ["4.2/sales-hdfs", "4.2/sales-rocksdb", "4.2/sales-format-2"])
def test_code_partitions_provider_and_format_change_in_one_pass(name: str, tmp_path: Path) -> None:
    old = golden(name, tmp_path)
    before = rows(old)
    for provider, state_format in (("rocksdb", 2), ("rocksdb", 1), ("hdfs", None)):
        new = str(tmp_path / f"{provider}{state_format}")
        plan = planned(old, new, WIDER, layout=StateLayout(5, provider, state_format))
        assert [step.path for step in plan.steps if isinstance(step, RewriteState)] == ["state/0"]
        go(plan)
        assert rows(new) == {key: {"max": None, **value} for key, value in before.items()}
        found = api.inspect(new)
        files = open_files(new)
        view = open_state(files, load(files))
        _require_at_home(view, 5)
        assert (view.at.provider, len(view.partitions)) == (provider, 5)
        assert bool(view.at.unique_ids) is (state_format == 2)
        assert found.committed_batch == api.inspect(old).committed_batch
        pins = load(files).conf
        assert pins["spark.sql.shuffle.partitions"] == "5"
        assert pins["spark.sql.streaming.stateStore.providerClass"].lower().count(provider) == 1
        assert not [finding for finding in api.doctor(new) if finding.severity == "error"]


def _hundred_ints(part: Part, partition: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The keys 0 to 99, each where Spark puts it, with itself for its count."""
    keys = pa.array([{"n": n} for n in range(100)], pa.struct([("n", pa.int32())]))
    homes = grouping_of(part.reading).hashes(keys).view("i4").astype("i8") % 2
    mine = keys.filter(pa.array(homes == partition))
    counts = mine.field(0).cast(pa.int64())
    yield mine, pa.StructArray.from_arrays([counts], fields=[pa.field("count", counts.type, False)])


def test_keys_of_a_wider_type_go_where_their_new_hash_puts_them(tmp_path: Path) -> None:
    """An int and a long of the same value have different hashes."""
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    ints = drawn("n INT", "count BIGINT NOT NULL", COUNT)
    given = MatchOptions(given=frozenset({(0, "default")}))
    made = planned(golden("4.2/sales-hdfs", tmp_path), old, ints, given)
    go(made, StateRewriter(lambda operator: _hundred_ints))
    goal = drawn("n BIGINT", "count BIGINT NOT NULL", COUNT)
    go(planned(old, new, goal, tree=plan(("count(1)",), ("n",))))
    assert rows(new) == {str({"n": n}): {"count": n} for n in range(100)}
    files = open_files(new)
    _require_at_home(open_state(files, load(files)), 2)


def test_unique_ids_are_new_and_stand_in_the_commit(tmp_path: Path) -> None:
    old, new = golden("4.2/sales-format-2", tmp_path), tmp_path / "new"
    go(planned(old, str(new), WIDER))
    last = max(int(path.name) for path in (new / "commits").iterdir())
    ids = parse_commit((new / f"commits/{last}").read_bytes()).state_unique_ids[0]
    before = parse_commit((Path(old) / f"commits/{last}").read_bytes()).state_unique_ids[0]
    named = {path.name.split("_")[1] for path in (new / "state").rglob("*_*.zip")}
    assert named == {f"{one}.zip" for stores in ids for one in stores}
    assert not set(ids) & set(before)


def test_fewer_keys_are_merged_and_land_where_spark_looks(tmp_path: Path) -> None:
    old, new = golden("4.2/windowed", tmp_path), str(tmp_path / "new")
    files = open_files(old)
    before = open_state(files, load(files)).rows()
    wanted: dict[str, int] = {}
    for row in before:
        key = str({"window": row["key"]["window"]})
        wanted[key] = wanted.get(key, 0) + row["value"]["count"]
    assert len(wanted) < len(before)
    key = "window STRUCT<start: TIMESTAMP, end: TIMESTAMP> NOT NULL"
    goal = drawn(key, "count BIGINT NOT NULL", COUNT)
    tree = plan(("count(1)",), ("window", "customerId"))
    go(planned(old, new, goal, MatchOptions(merge={"count": "sum"}), tree))
    assert {key: value["count"] for key, value in rows(new).items()} == wanted
    files = open_files(new)
    view = open_state(files, load(files))
    grouping = grouping_of(view.reading)
    for batch in view.batches():
        homes = grouping.hashes(batch.column(1)).view("i4").astype("i8") % 2
        assert homes.tolist() == batch.column(0).to_pylist()


def without_last_commit(name: str, folder: Path) -> str:
    """A golden whose last batch was stopped before its commit."""
    old = golden(name, folder)
    last = api.inspect(old).committed_batch
    for file in (f"{last}", f".{last}.crc"):
        (Path(old) / "commits" / file).unlink(missing_ok=True)
    return old


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("4.2/sales-hdfs", "delta"),
        ("4.2/sales-row-checksum", "delta"),
        ("4.2/sales-changelog", "changelog"),
    ],
)
def test_the_batch_in_flight_is_run_again_by_the_new_code(
    name: str, kind: str, tmp_path: Path
) -> None:
    old, new = without_last_commit(name, tmp_path), str(tmp_path / "new")
    go(planned(old, new, WIDER))
    in_flight = api.inspect(old).in_flight_batch
    assert in_flight is not None
    assert api.inspect(new).in_flight_batch == in_flight
    assert rows(new).keys() == rows(old).keys()
    left = {key: {"max": None, **value} for key, value in rows(old, in_flight).items()}
    assert rows(new, in_flight) == left
    # A file that Spark replaces when it runs the batch again, and never a snapshot.
    written = {path.name for path in (tmp_path / "new/state").rglob(f"{in_flight + 1}.*")}
    assert written == {f"{in_flight + 1}.{kind}"}


def test_with_unique_ids_the_batch_in_flight_is_carried_as_planned_alone(tmp_path: Path) -> None:
    old, new = without_last_commit("4.2/sales-format-2", tmp_path), str(tmp_path / "new")
    plan = planned(old, new, WIDER)
    go(plan)
    in_flight = api.inspect(old).in_flight_batch
    assert in_flight is not None
    assert api.inspect(new).in_flight_batch == in_flight
    assert rows(new).keys() == rows(old).keys()
    assert not list((tmp_path / "new/state").rglob(f"{in_flight + 1}_*"))
    assert any(f"Batch {in_flight} has to be computed again" in note for note in plan.notes)


def test_zips_with_unique_ids_say_what_the_drawing_spark_reads(tmp_path: Path) -> None:
    old = golden("4.2/sales-format-2", tmp_path)
    for spark, version in (("4.0.5", b"v2\n"), ("4.2.0", b"v1\n")):
        new = tmp_path / spark
        go(planned(old, str(new), replace(WIDER, spark=spark)))
        found = list((new / "state").rglob("*.zip"))
        assert found
        for path in found:
            with zipfile.ZipFile(path) as archive:
                assert archive.read("metadata").startswith(version)


def test_killed_midway_nothing_can_start_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    old = golden("4.2/sales-hdfs", tmp_path)
    content = {path: path.read_bytes() for path in Path(old).rglob("*") if path.is_file()}
    with dying(None) as counted:
        go(planned(old, str(tmp_path / "whole"), WIDER))
    wanted = rows(str(tmp_path / "whole"))
    for at in range(2, counted.count, max(1, counted.count // 10)):
        new = tmp_path / f"new{at}"
        plan = planned(old, str(new), WIDER)
        with pytest.raises(Killed), dying(at):
            go(plan)
        if not (new / "offsets").exists():
            continue
        numbers = sorted(int(p.name) for p in (new / "offsets").iterdir() if p.name.isdigit())
        if numbers and not (new / f"offsets/{numbers[-1]}").read_bytes().startswith(BLOCK):
            assert rows(str(new)) == wanted, at  # it died after the last step
        go(plan)
        assert rows(str(new)) == wanted
    assert {p: p.read_bytes() for p in Path(old).rglob("*") if p.is_file()} == content


def test_what_is_read_back_is_compared(tmp_path: Path) -> None:
    old, new = golden("4.2/sales-hdfs", tmp_path), tmp_path / "new"
    plan = planned(old, str(new), WIDER)

    class Losing(StateRewriter):
        def rewrite(self, step: Any, places: Any) -> None:
            super().rewrite(step, places)
            files = sorted((new / "state").rglob("*.snapshot"), key=lambda p: p.stat().st_size)
            files[-1].write_bytes(files[0].read_bytes())

    with pytest.raises(StoppedMidway, match="reads back as"):
        go(plan, Losing())
    go(plan)
    assert len(rows(str(new))) == len(rows(old))


def test_a_saved_plan_carries_itself_out(tmp_path: Path) -> None:
    old, new = golden("4.2/sales-rocksdb", tmp_path), str(tmp_path / "new")
    save_plan(planned(old, new, WIDER), str(tmp_path / "plan.json"))
    assert api.apply(str(tmp_path / "plan.json"), carrying=GO).executed
    assert rows(new).keys() == rows(old).keys()


def test_a_saved_plan_cannot_run_a_function(tmp_path: Path) -> None:
    old, new = golden("4.2/sales-hdfs", tmp_path), str(tmp_path / "new")
    given = MatchOptions(given=frozenset({(0, "default")}))
    save_plan(planned(old, new, WIDER, given), str(tmp_path / "plan.json"))
    with pytest.raises(WrongUse, match="a function or a table gives"):
        api.apply(str(tmp_path / "plan.json"), carrying=GO)
    assert not Path(new).exists()


def test_the_number_of_partitions_is_not_changed_by_the_way(tmp_path: Path) -> None:
    old = golden("4.2/sales-hdfs", tmp_path)
    origin = open_origin(open_files(old), old)
    kept = kept_operators(origin.files, origin.checkpoint, 1, SALES)
    other = Migration(conf={"spark.sql.shuffle.partitions": "5"})
    with pytest.raises(WrongUse, match="the session does not decide") as error:
        plan_migrate(origin, str(tmp_path / "new"), UpgradeOptions(), other, kept, WIDER)
    assert "--partitions N" in error.value.do


def test_a_skeleton_is_python_and_shows_both_schemas(tmp_path: Path) -> None:
    old = golden("4.2/sales-hdfs", tmp_path)
    origin = open_origin(open_files(old), old)
    kept = kept_operators(origin.files, origin.checkpoint, 1)
    text = render_skeleton("cp", "app.py", kept, WIDER)
    compile(text, "MIGRATION.py", "exec")
    assert "old value  sum DOUBLE, count BIGINT NOT NULL" in text
    assert "new value  max DOUBLE, count BIGINT NOT NULL, sum DOUBLE" in text
    assert 'F.col("value.sum").alias("sum")' in text
    assert "may not be null" not in text  # max is new, and null for keys that are there
    sums = replace(kept[0], readings=tuple(_without_the_count(one) for one in kept[0].readings))
    text = render_skeleton("cp", "app.py", (sums,), WIDER)
    assert 'cast("BIGINT").alias("count"),  # may not be null: put a value here' in text


def _without_the_count(reading: Reading) -> Reading:
    assert reading.schema is not None
    value = json.loads(reading.schema.value_json)
    fields = [one for one in value["fields"] if one["name"] != "count"]
    value_json = json.dumps({**value, "fields": fields})
    return replace(reading, schema=replace(reading.schema, value_json=value_json))


def _renamed(schema_json: str, name: str) -> str:
    schema = json.loads(schema_json)
    return json.dumps({**schema, "fields": [{**one, "name": name} for one in schema["fields"]]})


def test_no_name_of_a_checkpoint_becomes_code_of_a_skeleton(tmp_path: Path) -> None:
    """Whoever wrote the checkpoint has chosen the names; the user runs what is printed."""
    evil = '"""\n); raise SystemExit("PWNED")\n"""\\'
    old = golden("4.2/sales-hdfs", tmp_path)
    origin = open_origin(open_files(old), old)
    (kept,) = kept_operators(origin.files, origin.checkpoint, 1)
    renamed = [
        replace(one, schema=replace(one.schema, key_json=_renamed(one.schema.key_json, evil)))
        for one in kept.readings
        if one.schema is not None
    ]
    assert renamed
    named = replace(kept, operator=replace(kept.operator, name=evil), readings=tuple(renamed))
    drawn = replace(WIDER, operators=(named,))
    text = render_skeleton(f"cp{evil}", evil, (named,), drawn)
    pyspark = {"F": None, "DataFrame": None}
    code = text.replace("from pyspark.sql import DataFrame\n", "").replace(
        "from pyspark.sql import functions as F\n", ""
    )
    exec(compile(code, "MIGRATION.py", "exec"), pyspark)
    assert "PWNED" in text
    assert all("PWNED" not in line or line.count('"') > 1 for line in text.splitlines())


def test_defaults_are_in_every_row(tmp_path: Path) -> None:
    old, new = golden("4.2/sales-rocksdb", tmp_path), str(tmp_path / "new")
    go(planned(old, new, WIDER, MatchOptions(ColumnOptions(defaults={"max": 7}))))
    assert {value["max"] for value in rows(new).values()} == {7.0}


def test_the_same_plan_is_made_each_time(tmp_path: Path) -> None:
    old, new = golden("4.2/sales-format-2", tmp_path), str(tmp_path / "new")
    assert planned(old, new, WIDER).digest == planned(old, new, WIDER).digest
    other = replace(WIDER, operators=(replace(WIDER.operators[0], partitions=1),))
    assert planned(old, new, other).digest != planned(old, new, WIDER).digest
