"""Every document that --json prints is what its schema in docs/reference/schemas says."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import samples
from floodmark.cli.main import VERBS, run

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "docs" / "reference" / "schemas"
GOLDEN = ROOT / "tests" / "golden"
CHECKPOINTS = sorted([*GOLDEN.glob("3.5/*/checkpoint"), *GOLDEN.glob("4.2/*/checkpoint")])
TOTALS = GOLDEN / "4.2" / "sales-hdfs" / "checkpoint"
# Verbs that print no document of their own, and where their answers are described.
OTHERS = {"deploy": "a file", "outline": "a file", "serve": "/openapi.json"}


def document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    status = run([*arguments, "--json"])
    told = capsys.readouterr()
    assert status in (0, 1), told.err
    return json.loads(told.out)


def validate(value: Any, name: str) -> None:
    jsonschema.validate(value, json.loads((SCHEMAS / f"{name}.json").read_text()))


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_reading_verbs_print_what_the_schema_says(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("inspect", "batches", "doctor"):
        validate(document([verb, str(checkpoint)], capsys), verb)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["inspect", "sales-hdfs", "--schema"], "inspect-schema"),
        (["offsets", "kafka"], "offsets"),
        (["files", "files"], "files"),
        (["state", "sales-hdfs"], "state"),
        (["state", "sales-hdfs", "--stats"], "state-stats"),
        (["state", "sales-hdfs", "--changes", "1..2"], "state-changes"),
        (["diff", "sales-hdfs", "--batches", "1..2"], "diff"),
        (["scan", "sales-hdfs"], "scan"),
        (["watch", "sales-hdfs", "--once"], "watch"),
        (["lint", "sales-hdfs"], "lint"),
        (["upgrade", "kafka", "new"], "changing-verb"),
        (["copy", "sales-rocksdb", "new"], "changing-verb"),
        (["repartition", "sales-hdfs", "new", "--partitions", "3"], "changing-verb"),
        (["backup", "sales-hdfs", "repository"], "changing-verb"),
        (["compact", "sales-hdfs"], "changing-verb"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_document_is_what_its_schema_says(
    arguments: list[str],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("floodmark.changes.in_use._movement", lambda *_: None)
    origin = GOLDEN / "4.2" / arguments[1] / "checkpoint"
    shutil.copytree(origin, tmp_path / arguments[1])
    monkeypatch.chdir(tmp_path)
    validate(document(arguments, capsys), name)


def test_flows_of_a_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = tmp_path / "lake" / "_checkpoints" / "main" / "sales" / "orders" / "orders"
    samples.write(flow / "0", samples.file_stream())
    validate(document(["inspect", str(tmp_path / "lake")], capsys), "inspect-pipeline")


def test_lag_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples.write(tmp_path / "files", samples.file_stream())
    (tmp_path / "in").mkdir()
    validate(
        document(["lag", str(tmp_path / "files"), "--input", str(tmp_path / "in")], capsys), "lag"
    )


def test_backups_are_listed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repository = str(tmp_path / "repository")
    assert run(["backup", str(TOTALS), repository, "--execute"]) == 0
    validate(document(["backup", "--list", repository], capsys), "backup-list")
    validate(document(["backup", "--check", repository], capsys), "backup-check")


def test_a_rule_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    validate(document(["explain", "FM101"], capsys), "explain")
    validate(document(["explain", "--all"], capsys), "explain-all")


def test_every_verb_has_a_schema() -> None:
    there = {path.stem for path in SCHEMAS.glob("*.json")}
    reading = {verb for title, group in VERBS.items() if title != "Changing" for verb in group}
    assert "changing-verb" in there
    assert {verb for verb in reading if verb not in there} == set(OTHERS)


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_a_schema_is_one(path: Path) -> None:
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_every_field_is_described(path: Path) -> None:
    assert list(undescribed(json.loads(path.read_text()), "")) == []


def undescribed(schema: Any, path: str) -> Iterator[str]:
    if isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            if not field.get("description"):
                yield f"{path}.{name}"
        for key, part in schema.items():
            yield from undescribed(part, path if key == "properties" else f"{path}.{key}")
    elif isinstance(schema, list):
        for number, part in enumerate(schema):
            yield from undescribed(part, f"{path}.{number}")


def test_a_field_that_no_schema_has_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    told = document(["inspect", str(TOTALS)], capsys)
    with pytest.raises(jsonschema.ValidationError):
        validate({**told, "surprise": 1}, "inspect")


def test_field_descriptions_come_from_the_source() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from json_schemas import field_words

        from floodmark.checkpoint.views.inspection import Inspection

        assert "not listed to its end" in field_words(Inspection)["files_complete"]
    finally:
        sys.path.remove(str(ROOT / "scripts"))
