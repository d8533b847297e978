"""`repartition` and `convert`: the same rows, where Spark will look for them; and no half-made
state that anything could start on."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from changes_crashing import Killed, dying

from carried import GO
from floodmark import api
from floodmark.changes.apply import Change, places_of
from floodmark.changes.execute import carry_out
from floodmark.changes.fingerprint import BLOCK
from floodmark.changes.plan import render_plan, seal
from floodmark.changes.plan.parsing import parse_plan
from floodmark.changes.plan.steps import RewriteState
from floodmark.changes.state_rewriter import StateRewriter
from floodmark.checkpoint.commits import parse_commit
from floodmark.errors import (
    EditedPlan,
    FloodmarkError,
    NoAnswer,
    NotEmpty,
    StoppedMidway,
    WouldLose,
    WrongUse,
)
from floodmark.state.keys.grouping import grouping_of
from floodmark.statestore.open import open_state
from floodmark.storage.files import open_files
from floodmark.storage.load import load

GOLDEN = Path(__file__).parents[1] / "golden"
CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
STATEFUL = sorted(path.parent.parent for path in GOLDEN.glob("*/*/checkpoint/state"))
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
Rows = dict[tuple[int, str], list[tuple[str, str]]]


def golden(name: str, folder: Path) -> str:
    return str(shutil.copytree(GOLDEN / name / "checkpoint", folder / "cp"))


def rows_of(location: str) -> Rows:
    """Every row of every store, once it is sure that each lies where Spark's hash puts it."""
    files = open_files(location)
    checkpoint = load(files)
    found: Rows = {}
    for operator in checkpoint.state_operators:
        first = open_state(files, checkpoint, operator.operator)
        for store in first.stores:
            view = open_state(files, checkpoint, operator.operator, store)
            found[operator.operator, store] = sorted(
                (repr(row["key"]), repr(row["value"])) for row in view.rows()
            )
    return found


def homes(location: str, operator: int = 0) -> set[tuple[int, int]]:
    """(where it lies, where the hash of its key says) of every row that is shown by its key."""
    files = open_files(location)
    checkpoint = load(files)
    view = open_state(files, checkpoint, operator)
    grouping = grouping_of(view.reading)
    found = set()
    for partition in view.partitions:
        with view.at.open(partition) as opened:
            layout = view.layout(opened)
            for records in opened.records():
                mine = layout.mine(records)
                keys = mine.keys if layout.family is None else mine.keys.skip(2)
                hashes = grouping.hashes(layout.decode_keys(keys)).view("i4").astype("i8")
                found |= {(partition, home) for home in (hashes % len(view.partitions)).tolist()}
    return found


CHANGES: dict[str, Callable[[str, str], Change]] = {
    "to 5": lambda cp, new: api.repartition(cp, new, partitions=5, carrying=GO),
    "to 1": lambda cp, new: api.repartition(cp, new, partitions=1, carrying=GO),
    "rocksdb": lambda cp, new: api.convert(cp, new, provider="rocksdb", carrying=GO),
    "hdfs": lambda cp, new: api.convert(cp, new, provider="hdfs", carrying=GO),
    "format 2": lambda cp, new: api.convert(
        cp, new, provider="rocksdb", state_format=2, carrying=GO
    ),
    "format 1": lambda cp, new: api.convert(
        cp, new, provider="rocksdb", state_format=1, carrying=GO
    ),
}
REFUSALS = ("already", "its state has one partition", "only RocksDB has", "no batch is committed")


@pytest.mark.parametrize("cp", STATEFUL, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_golden_state_keeps_its_rows(cp: Path, tmp_path: Path) -> None:
    old = str(shutil.copytree(cp / "checkpoint", tmp_path / "cp"))
    before = rows_of(old) if "in-flight-first" not in cp.name else {}
    done = 0
    # Each golden is tried with one verb each way; which one turns, so that all are tried.
    turn = STATEFUL.index(cp)
    chosen = [list(CHANGES)[turn % 2], list(CHANGES)[2 + turn % 4]]
    for name in chosen:
        new = str(tmp_path / name)
        try:
            change = CHANGES[name](old, new)
        except NoAnswer as error:
            if not any(words in error.what for words in REFUSALS):
                raise
            continue
        done += 1
        assert change.executed
        assert rows_of(new) == before
        _as_before(old, new)
    assert done or "limit" in cp.name or "first" in cp.name or set(chosen) & {"hdfs", "rocksdb"}


def _as_before(old: str, new: str) -> None:
    one, two = api.inspect(old), api.inspect(new)
    assert two.query_id == one.query_id
    assert (two.latest_batch, two.committed_batch) == (one.latest_batch, one.committed_batch)
    assert two.in_flight_batch == one.in_flight_batch
    assert two.sources == one.sources
    assert two.watermark_ms == one.watermark_ms
    errors = [f for f in api.doctor(new) if f.severity == "error"]
    assert not errors


def test_keys_land_where_spark_looks_for_them(tmp_path: Path) -> None:
    old = golden("4.2/windowed", tmp_path)
    api.repartition(old, str(tmp_path / "new"), partitions=7, carrying=GO)
    found = homes(str(tmp_path / "new"))
    assert found
    assert all(lies == should for lies, should in found)
    conf = api.inspect(str(tmp_path / "new")).conf
    assert conf[PARTITIONS] == "7"
    metadata = (tmp_path / "new/state/0/_metadata/metadata").read_text()
    assert json.loads(metadata.split("\n")[1])["stateStoreInfo"][0]["numPartitions"] == 7


def test_the_provider_is_pinned_and_comes_back(tmp_path: Path) -> None:
    old = golden("4.2/session-window", tmp_path)
    there, back = str(tmp_path / "there"), str(tmp_path / "back")
    first = api.inspect(old).state[0].provider
    other = "rocksdb" if first == "hdfs" else "hdfs"
    api.convert(old, there, provider=other, carrying=GO)
    assert api.inspect(there).conf[PROVIDER] == (ROCKSDB if other == "rocksdb" else HDFS)
    assert api.inspect(there).state[0].provider == other
    api.convert(there, back, provider=first, carrying=GO)
    assert rows_of(back) == rows_of(old)


def test_unique_ids_stand_in_the_commit(tmp_path: Path) -> None:
    old, new = golden("4.2/join", tmp_path), tmp_path / "new"
    api.convert(old, str(new), provider="rocksdb", state_format=2, carrying=GO)
    last = max(int(path.name) for path in (new / "commits").iterdir())
    commit = parse_commit((new / f"commits/{last}").read_bytes())
    assert commit.version == 2
    ids = commit.state_unique_ids[0]
    assert [len(stores) for stores in ids] == [4, 4]
    named = {path.name.split("_")[1] for path in (new / "state").rglob("*_*.zip")}
    assert named == {f"{one}.zip" for stores in ids for one in stores}
    back = tmp_path / "back"
    api.convert(str(new), str(back), provider="hdfs", carrying=GO)
    assert parse_commit((back / f"commits/{last}").read_bytes()).version == 1
    assert rows_of(str(back)) == rows_of(old)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("4.0/sales-format-2-alone", b"v2\n"),
        ("4.0/sales-format-2", b"v1\n"),
        ("4.3/sales-format-2", b"v1\n"),
    ],
)
def test_zips_with_unique_ids_say_what_their_spark_reads(
    name: str, version: bytes, tmp_path: Path
) -> None:
    """4.0 writes v2 in a session that had unique ids from its start, and then reads no v1."""
    old, new = golden(name, tmp_path), tmp_path / "new"
    api.repartition(old, str(new), partitions=3, carrying=GO)
    zips = list((new / "state").rglob("*.zip"))
    assert len(zips) == 3
    for path in zips:
        with zipfile.ZipFile(path) as archive:
            assert archive.read("metadata").startswith(version)


def test_a_batch_in_flight_is_carried_with_what_it_has_written(tmp_path: Path) -> None:
    old, new = golden("4.2/in-flight-state", tmp_path), str(tmp_path / "new")
    change = api.repartition(old, new, partitions=3, carrying=GO)
    in_flight = api.inspect(old).in_flight_batch
    assert in_flight is not None
    assert api.inspect(new).in_flight_batch == in_flight
    (target,) = [step.target for step in change.plan.steps if step.do == "rewrite-state"]
    assert (target.version, target.in_flight) == (in_flight, in_flight)
    # The entry of the batch that runs again says the same number: Spark compares them.
    logged = (tmp_path / f"new/offsets/{in_flight}").read_text()
    assert f'"{PARTITIONS}":"3"' in logged
    one, two = (
        open_state(open_files(place), load(open_files(place)), batch=in_flight)
        for place in (old, new)
    )
    assert sorted(map(repr, (r["key"] for r in one.rows()))) == sorted(
        map(repr, (r["key"] for r in two.rows()))
    )
    # Changes, which Spark replaces when it runs the batch again, and never a snapshot.
    written = {path.name for path in (tmp_path / "new/state").rglob(f"{in_flight + 1}.*")}
    assert written == {f"{in_flight + 1}.delta"}


@pytest.mark.parametrize("verb", ["to 5", "format 1"])
def test_with_unique_ids_a_batch_in_flight_is_carried_as_planned_alone(
    verb: str, tmp_path: Path
) -> None:
    old, new = Path(golden("4.2/sales-format-2", tmp_path)), tmp_path / "new"
    last = api.inspect(str(old)).committed_batch
    assert last is not None
    (old / f"commits/{last}").unlink()
    change = CHANGES[verb](str(old), str(new))
    assert api.inspect(str(new)).in_flight_batch == last
    assert not [*(new / "state").rglob(f"{last + 1}_*"), *(new / "state").rglob(f"{last + 1}.*")]
    assert any(f"Batch {last} has to be computed again" in note for note in change.plan.notes)


def test_a_plan_says_what_it_rewrites(tmp_path: Path) -> None:
    old = golden("4.2/sales-rocksdb", tmp_path)
    change = api.repartition(old, str(tmp_path / "new"), partitions=6)
    assert not change.executed
    assert not (tmp_path / "new").exists()
    plan = change.as_json["plan"]
    steps = [step for step in plan["steps"] if step["do"] == "rewrite-state"]
    assert [step["path"] for step in steps] == ["state/0"]
    assert steps[0]["how"]["partitions"] == 6
    assert all(step["why"] for step in steps)
    saved = tmp_path / "plan.json"
    from floodmark.changes.plan.saved import save_plan

    save_plan(change.plan, str(saved))
    done = api.apply(str(saved), carrying=GO)
    assert done.executed
    assert rows_of(str(tmp_path / "new")) == rows_of(old)
    # Again: it is done, and nothing is done twice.
    assert "already" in api.repartition(old, str(tmp_path / "new"), partitions=6, carrying=GO).words
    with pytest.raises(NotEmpty):
        api.repartition(old, str(tmp_path / "new"), partitions=7, carrying=GO)


def test_a_step_of_an_earlier_release_is_read_and_not_carried_out(tmp_path: Path) -> None:
    """It told of partitions and provider alone; nothing is guessed of the rest."""
    old, new = golden("4.2/sales-rocksdb", tmp_path), tmp_path / "new"
    plan = api.repartition(old, str(new), partitions=6).plan
    earlier = {"operator": 0, "batch": 1, "version": 2, "partitions": 6, "provider": "rocksdb"}
    steps = tuple(
        replace(step, how={**earlier, "unique_ids": None})
        if isinstance(step, RewriteState)
        else step
        for step in plan.steps
    )
    saved = tmp_path / "plan.json"
    saved.write_bytes(render_plan(seal(replace(plan, steps=steps))))
    with pytest.raises(EditedPlan, match="an earlier floodmark made this plan") as error:
        api.apply(str(saved), carrying=GO)
    assert "Plan again" in error.value.do
    assert not new.exists()
    # A journal holds such plans as well: they are there as they were, for `undo`.
    read = parse_plan(saved.read_bytes())
    assert render_plan(read) == saved.read_bytes()


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in (folder / "offsets").iterdir() if path.name.isdigit())


def _is_blocked(folder: Path) -> bool:
    numbers = _numbers(folder) if (folder / "offsets").exists() else []
    return bool(numbers) and (folder / f"offsets/{numbers[-1]}").read_bytes().startswith(BLOCK)


CRASHES: dict[str, tuple[str, dict[str, Any]]] = {
    "repartition": ("4.2/sales-hdfs", {"partitions": 3}),
    "convert": ("4.2/dedup", {"provider": "rocksdb"}),
}


@pytest.mark.parametrize("verb", CRASHES)
def test_killed_midway_nothing_can_start_on_it(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    name, arguments = CRASHES[verb]
    old = golden(name, tmp_path)
    before = rows_of(old)
    content = {path: path.read_bytes() for path in Path(old).rglob("*") if path.is_file()}

    def go(new: Path) -> Change:
        change: Change = getattr(api, verb)(old, str(new), carrying=GO, **arguments)
        return change

    with dying(None) as counted:
        go(tmp_path / "whole")
    for at in range(2, counted.count, max(1, counted.count // 12)):
        new = tmp_path / f"new{at}"
        with pytest.raises(Killed), dying(at):
            go(new)
        begun = (new / "offsets").exists() and bool(_numbers(new))
        if begun:
            assert _is_blocked(new) or rows_of(str(new)) == before, at
        if at % 2:
            go(new)
            assert not _is_blocked(new)
            assert rows_of(str(new)) == before
        elif begun:
            api.undo(str(new), carrying=GO)
            assert not [path for path in new.rglob("*") if path.is_file()]
    assert {p: p.read_bytes() for p in Path(old).rglob("*") if p.is_file()} == content


def test_what_is_read_back_is_compared(tmp_path: Path) -> None:
    """A storage that loses a row is found out before the plan is done."""
    old, new = golden("4.2/sales-hdfs", tmp_path), tmp_path / "new"
    plan = api.repartition(old, str(new), partitions=3).plan

    class Losing(StateRewriter):
        def rewrite(self, step: Any, places: Any) -> None:
            super().rewrite(step, places)
            held = max((new / "state").rglob("*.snapshot"), key=lambda path: path.stat().st_size)
            empty = min((new / "state").rglob("*.snapshot"), key=lambda path: path.stat().st_size)
            held.write_bytes(empty.read_bytes())

    with pytest.raises(StoppedMidway, match="reads back as"):
        carry_out(plan, places_of(plan, None), clock=GO.clock, rewriter=Losing())
    assert _is_blocked(new)
    api.repartition(old, str(new), partitions=3, carrying=GO)
    assert rows_of(str(new)) == rows_of(old)


def test_without_a_rewriter_nothing_is_begun(tmp_path: Path) -> None:
    old = golden("4.2/sales-hdfs", tmp_path)
    plan = api.repartition(old, str(tmp_path / "new"), partitions=3).plan
    with pytest.raises(WrongUse, match="rewrites state"):
        carry_out(plan, places_of(plan, None), clock=GO.clock)
    assert not (tmp_path / "new").exists()


def test_keys_that_lie_elsewhere_are_refused(tmp_path: Path) -> None:
    old = Path(golden("4.2/sales-hdfs", tmp_path))
    one, two = old / "state/0/0", old / "state/0/1"
    for path in [*one.iterdir()]:
        other = two / path.name
        if path.is_file() and other.exists() and not path.name.startswith("."):
            mine, theirs = path.read_bytes(), other.read_bytes()
            path.write_bytes(theirs)
            other.write_bytes(mine)
    with pytest.raises(WouldLose, match="are not in the partition that Spark's hash gives"):
        api.repartition(str(old), str(tmp_path / "new"), partitions=3)
    assert not (tmp_path / "new").exists()
    # Another provider moves no key: each stays where the query has put it.
    api.convert(str(old), str(tmp_path / "new"), provider="rocksdb", carrying=GO)
    assert _places(str(tmp_path / "new")) == _places(str(old))


def _places(location: str) -> dict[str, int]:
    files = open_files(location)
    return {repr(row["key"]): row["partition"] for row in open_state(files, load(files)).rows()}


@pytest.mark.skipif(not CORPUS.is_dir(), reason="Spark's own samples are not there")
def test_a_state_that_is_partitioned_by_less_than_its_keys_is_converted(tmp_path: Path) -> None:
    name = "checkpoint-version-3.2.0-streaming-aggregate-with-repartition"
    old = str(shutil.copytree(CORPUS / name, tmp_path / "cp"))
    with pytest.raises(WouldLose, match="are not in the partition that"):
        api.repartition(old, str(tmp_path / "new"), partitions=3)
    there, back = str(tmp_path / "there"), str(tmp_path / "back")
    api.convert(old, there, provider="rocksdb", carrying=GO)
    api.convert(there, back, provider="hdfs", carrying=GO)
    assert _places(old)
    assert _places(there) == _places(back) == _places(old)
    assert rows_of(there) == rows_of(back) == rows_of(old)


@pytest.mark.parametrize(
    ("name", "ask", "words"),
    [
        ("4.2/limit", {"partitions": 3}, "one partition"),
        ("4.2/sales-hdfs", {"partitions": 2}, "2 partitions already"),
        ("4.2/files", {"partitions": 3}, "has no state"),
        ("4.2/in-flight-first", {"partitions": 3}, "no batch is committed"),
        ("4.2/sales-hdfs", {"provider": "hdfs"}, "already, in format 1"),
        ("4.2/transform-with-state", {"provider": "hdfs"}, "transformWithStateInPandas"),
        ("4.3/join-v4", {"provider": "hdfs"}, "symmetricHashJoin keeps column families"),
        ("4.2/sales-hdfs", {"partitions": 0}, "between 1 and"),
        ("4.2/sales-hdfs", {"provider": "mine"}, "Spark has hdfs and rocksdb"),
        ("4.2/sales-rocksdb", {"provider": "hdfs", "state_format": 2}, "only RocksDB"),
        ("4.2/sales-rocksdb", {"provider": "rocksdb", "state_format": 3}, "Spark has 1 and 2"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    name: str, ask: dict[str, Any], words: str, tmp_path: Path
) -> None:
    old = golden(name, tmp_path)
    verb = api.repartition if "partitions" in ask else api.convert
    with pytest.raises(FloodmarkError, match=words):
        verb(old, str(tmp_path / "new"), carrying=GO, **ask)
    assert not (tmp_path / "new").exists()


def test_damaged_state_is_not_written_anew(tmp_path: Path) -> None:
    old = Path(golden("4.2/sales-hdfs", tmp_path))
    largest = max((old / "state/0").rglob("*.delta"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-30])
    with pytest.raises(FloodmarkError, match=largest.name):
        api.repartition(str(old), str(tmp_path / "new"), partitions=3, carrying=GO)
    largest.unlink()
    with pytest.raises(FloodmarkError, match=largest.name):
        api.repartition(str(old), str(tmp_path / "new2"), partitions=3, carrying=GO)
