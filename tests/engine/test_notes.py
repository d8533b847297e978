"""What is written beside a checkpoint about each start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from floodmark.engine.start.notes import (
    KEPT,
    StartNote,
    write_note,
)
from floodmark.storage.files import open_files
from floodmark.storage.last_start import acting_note, latest_note, note_numbers


def note(**changes: Any) -> StartNote:
    fields: dict[str, Any] = {
        "pipeline": "sales",
        "application": "sales.py",
        "code_fingerprint": "abc",
        "parameters": {},
        "query_id": "q",
        "run_id": "r",
        "query_name": None,
        "spark_version": "4.2.0",
        "java_version": "17",
        "connectors": {},
        "master": "local[2]",
        "sources": (),
        "sink": "delta",
        "sink_options": {},
        "output_mode": "Append",
        "trigger": "",
        "schema_json": "{}",
        "conf": {},
        "host": "h",
        "pid": 1,
        "tree": {},
    }
    return StartNote(**{**fields, **changes})


def test_notes_are_numbered_and_the_newest_is_found(tmp_path: Path) -> None:
    files = open_files(str(tmp_path))
    assert acting_note(files, None) is None
    write_note(files, note(run_id="first"))
    assert write_note(files, note(run_id="second")) == "_floodmark/starts/2.json"
    found = acting_note(files, None)
    assert found is not None
    assert found["run_id"] == "second"
    assert found["floodmark"] == "start-note"


def test_a_start_that_committed_nothing_is_not_what_the_state_comes_from(tmp_path: Path) -> None:
    files = open_files(str(tmp_path))
    write_note(files, note(run_id="first", next_batch=0))
    write_note(files, note(run_id="failed", next_batch=4))
    found = [acting_note(files, committed) for committed in (3, 4)]
    assert [one and one["run_id"] for one in found] == ["first", "failed"]
    assert (acting_note(files, None) or {})["run_id"] == "failed"  # nobody knows better
    files.write("commits/3", b"v1")
    assert (latest_note(files) or {})["run_id"] == "first"


def test_where_every_start_failed_no_note_tells_of_the_state(tmp_path: Path) -> None:
    """A plain query made the state; the notes are of starts that did not come to a batch."""
    files = open_files(str(tmp_path))
    write_note(files, note(run_id="failed", next_batch=4))
    assert acting_note(files, 3) is None


def test_a_broken_note_is_passed_over(tmp_path: Path) -> None:
    files = open_files(str(tmp_path))
    write_note(files, note(run_id="first"))
    files.write("_floodmark/starts/2.json", b"{")
    found = acting_note(files, None)
    assert found is not None
    assert found["run_id"] == "first"
    assert write_note(files, note()) == "_floodmark/starts/3.json"


def test_old_notes_go(tmp_path: Path) -> None:
    files = open_files(str(tmp_path))
    for _ in range(KEPT + 5):
        write_note(files, note())
    numbers = note_numbers(files)
    assert len(numbers) == KEPT
    assert numbers[-1] == KEPT + 5
