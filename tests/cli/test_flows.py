"""Declarative pipelines on the command line: their storage, their specification, one flow."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from commands import Capture, given

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2" / "sales-hdfs" / "checkpoint"
# The golden checkpoint lies where its input does not.
LOST = ("--accept", "out-of-reach")


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """A flow with two checkpoints, one of which has taken the other's place, and one refreshed."""
    place = tmp_path / "storage"
    checkpoints = place / "_checkpoints" / "spark_catalog" / "default"
    for table, number in (("totals/totals", 0), ("totals/totals", 1), ("late/fill", 0)):
        shutil.copytree(GOLDEN, checkpoints / table / str(number))
    (checkpoints / "late" / "fill" / "1").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(f"name: orders\nstorage: file://{place}\n")
    return place


def test_every_flow_of_a_pipeline(storage: Path, capsys: Capture) -> None:
    spec = storage.parent / "spark-pipeline.yml"
    status, text, _ = given(capsys, "inspect", spec)
    assert status == 0
    assert "spark_catalog.default.totals → flow totals" in text
    assert "2 flows, 1 of which will start from nothing." in text
    status, found, _ = given(capsys, "inspect", storage, "--json")
    assert status == 0
    statuses = {tuple(one["path"].split("/")[-2:]): one["flow"]["status"] for one in found["flows"]}
    assert statuses == {
        ("fill", "0"): "superseded",
        ("fill", "1"): "empty",
        ("totals", "0"): "superseded",
        ("totals", "1"): "current",
    }
    status, found, _ = given(capsys, "scan", spec, "--json")
    assert status == 0
    assert {one["flow"]["pipeline"] for one in found["checkpoints"]} == {"orders"}
    assert [one["findings"] for one in found["checkpoints"] if one["committed_batch"] is None] == [
        []
    ]


def test_a_storage_without_a_checkpoint_of_a_flow(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "_checkpoints").mkdir()
    status, text, _ = given(capsys, "inspect", tmp_path)
    assert status == 0
    assert text.strip().endswith("No flow has a checkpoint here: none that streams has run yet.")


def test_one_checkpoint_of_a_flow(
    storage: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = storage / "_checkpoints" / "spark_catalog" / "default" / "late" / "fill"
    status, found, _ = given(capsys, "inspect", fill / "1", "--json")
    assert status == 0
    assert found["flow"] == {
        "pipeline": "storage",
        "table": "spark_catalog.default.late",
        "flow": "fill",
        "status": "empty",
    }
    assert found["restart"]["action"] == "begin"
    monkeypatch.chdir(fill)
    status, text, _ = given(capsys, "inspect", "0")
    assert status == 0
    assert "superseded: a full refresh or a later checkpoint has taken its place" in text


def test_a_change_of_a_flow_goes_where_the_pipeline_looks_next(
    storage: Path, capsys: Capture
) -> None:
    totals = storage / "_checkpoints" / "spark_catalog" / "default" / "totals" / "totals"
    status, _, said = given(capsys, "repartition", totals / "1", "--partitions", "3", "--execute")
    assert status == 0, said
    status, found, _ = given(capsys, "inspect", totals / "2", "--json")
    assert status == 0
    assert found["flow"]["status"] == "current"
    assert found["committed_batch"] is not None
    status, _, said = given(capsys, "repartition", GOLDEN, "--partitions", "3")
    assert status == 2
    assert "Missing argument 'NEW'" in said


# Each line has nine of the one before: a list of 387 million, if somebody walks it.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{one}: &{one} [{', '.join([f'*{before}'] * 9)}]\n" for before, one in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [", "no YAML"),
        ("- a", "it has no fields"),
        ("name: x", "it has no storage"),
        ("storage: /x", "it has no name"),
        ("name: x\nstorage: STORAGE\nconfiguration: {a: 1}", "configuration is no list"),
        ("name: x\nstorage: STORAGE\nlibraries: [{file: x}]", "libraries is no list of globs"),
        (
            "name: x\nstorage: STORAGE\nlibraries: [{glob: {include: ../**}}]",
            "leads out of the specification's folder",
        ),
        *(
            (f"name: x\nstorage: STORAGE\nlibraries: {odd}", "libraries is no list of globs")
            for odd in (
                "[{glob: {include: ''}}]",
                "[{glob: {include: [a, b]}}]",
                "[{file: {path: a.py}}]",
                "[{glob: a}]",
                "abc",
                "7",
            )
        ),
        ("name: x\nstorage: STORAGE\nlibraries: [{glob: {include: /etc/*.py}}]", "leads out of"),
        ("name:\tx\n\tstorage: y", "Line 1: found character"),
        ("name: " + "[" * 900 + "]" * 900, "nested too deeply"),
        ("name: !!python/object/apply:os.system [true]\nstorage: x", "could not determine"),
        (BOMB + "name: x\nstorage: *i", "it has no storage"),
        (BOMB + "name: x\nstorage: STORAGE\nlibraries: *i", "libraries is no list of globs"),
        ("name: x\nstorage: a\n---\nname: y\nstorage: b", "found another document"),
        ("name: x\nstorage: EMPTY", "holds no checkpoints of a pipeline"),
        ("name: " + "x" * (1 << 20), "larger than a megabyte"),
    ],
)
def test_specifications_that_are_none(
    text: str, said: str, storage: Path, tmp_path: Path, capsys: Capture
) -> None:
    spec = tmp_path / "odd.yml"
    (tmp_path / "empty").mkdir()
    spec.write_text(text.replace("STORAGE", str(storage)).replace("EMPTY", str(tmp_path / "empty")))
    status, _, told = given(capsys, "inspect", spec)
    assert status in (2, 3)
    assert said in told
    status, _, told = given(capsys, "inspect", tmp_path / "nowhere.yml")
    assert status in (2, 3)
    assert "No such file" in told


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("name: [", [], "Line 1: "),
        ("text", [], "it has no fields"),
        ("name: p\nstorage: s\nlibraries: [{glob: {include: ../x}}]\n", [], "leads out of"),
        ("name: p\nstorage: s\n", ["--once"], "--once: not for a declarative pipeline"),
        ("name: p\nstorage: s\n", ["--health-port", "0"], "--health-port: not for a declarative"),
        ("name: p\nstorage: s\n", ["--allow", "nothing"], "--allow nothing: unknown name"),
    ],
)
def test_a_run_that_says_why_not_before_spark_starts(
    text: str, words: list[str], said: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "p.yml").write_text(text)
    status, _, err = given(capsys, "run", tmp_path / "p.yml", *words)
    assert status in (2, 3)
    assert said in err
    assert [one.name for one in tmp_path.iterdir()] == ["p.yml"]


def test_a_run_is_refused_where_the_doctor_finds_something(storage: Path, capsys: Capture) -> None:
    flow = storage / "_checkpoints" / "spark_catalog" / "default" / "totals" / "totals"
    (flow / "0" / "commits" / "90").write_text("v1\n{}")  # superseded: the runner passes it over
    (flow / "1" / "commits" / "91").write_text("v1\n{}")
    before = _content(storage)
    status, _, said = given(capsys, "run", storage.parent / "spark-pipeline.yml")
    assert status == 4
    assert "91" in said
    assert "90" not in said
    assert "--allow commits-ahead" in said
    assert _content(storage) == before


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()
    }


def test_a_flow_is_rewound_into_the_next_number(storage: Path, capsys: Capture) -> None:
    flow = storage / "_checkpoints" / "spark_catalog" / "default" / "totals" / "totals"
    before = _content(flow / "1")
    status, text, _ = given(capsys, "rewind", flow / "1", "--to-batch", 1, *LOST)
    assert status == 0
    assert f"The pipeline takes {flow / '2'} up with its next run." in text
    assert not (flow / "2").exists()
    status, _, said = given(capsys, "rewind", flow / "1", "--to-batch", 1, *LOST, "--execute")
    assert status == 0, said
    assert _content(flow / "1") == before
    status, found, _ = given(capsys, "inspect", flow / "2", "--json")
    assert (status, found["committed_batch"], found["flow"]["status"]) == (0, 1, "current")
    status, found, _ = given(capsys, "doctor", flow / "2", "--json")
    assert [one for one in found["findings"] if one["severity"] != "advice"] == []
    status, _, said = given(capsys, "undo", flow / "2", "--execute")
    assert status == 0, said
    assert not (flow / "2" / "offsets").exists()


def test_a_flow_is_repaired_into_the_next_number(storage: Path, capsys: Capture) -> None:
    flow = storage / "_checkpoints" / "spark_catalog" / "default" / "totals" / "totals"
    newest = max(int(one.name) for one in (flow / "1" / "offsets").glob("[0-9]*"))
    (flow / "1" / "offsets" / f"{newest + 1}").write_bytes(b"")  # a crash in mid-write
    before = _content(flow / "1")
    status, _, said = given(capsys, "repair", flow / "1", "--execute")
    assert status == 0, said
    assert _content(flow / "1") == before
    assert not (flow / "2" / "offsets" / f"{newest + 1}").exists()
    status, found, _ = given(capsys, "doctor", flow / "2", "--json")
    assert [one for one in found["findings"] if one["severity"] != "advice"] == []
    # Nothing to do makes no number.
    status, _, _ = given(capsys, "repair", flow / "2", "--execute")
    assert status == 0
    assert not (flow / "3").exists()
