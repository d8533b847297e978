"""`floodmark state`: what it prints, what it exports, and how it says no."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import floodmark
from floodmark.cli.main import run
from floodmark.cli.text import render_state
from floodmark.statestore.diff import StateChange

SALES = str(Path(__file__).parents[1] / "golden" / "4.1" / "sales-rocksdb" / "checkpoint")
STATELESS = str(Path(__file__).parents[1] / "golden" / "4.1" / "files" / "checkpoint")


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert run(["state", *arguments, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_rows_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, SALES)
    assert list(found) == ["operator", "store", "batch", "key_schema", "value_schema", "rows"]
    assert (found["operator"], found["store"], found["batch"]) == (0, "default", 2)
    rows = {row["key"]["customerId"]: row["value"] for row in found["rows"]}  # type: ignore[attr-defined]
    assert rows["c1"] == {"sum": 22.5, "count": 3}
    assert len(rows) == 5


def test_an_earlier_batch_and_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(_json(capsys, SALES, "--batch", "0")["rows"]) == 3  # type: ignore[arg-type]
    assert len(_json(capsys, SALES, "--limit", "2")["rows"]) == 2  # type: ignore[arg-type]


def test_one_key(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, SALES, "--key", '{"customerId": "Zoë"}')
    assert [row["value"] for row in found["rows"]] == [{"sum": 7.25, "count": 1}]  # type: ignore[attr-defined]


def test_some_fields_of_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    """Every provider, each key type: the rows are those of a filter over all of them."""
    golden = Path(SALES).parents[1]
    for name in ("windowed", "session-window"):
        place = str(golden / name / "checkpoint")
        rows = _json(capsys, place)["rows"]
        for customer in {row["key"]["customerId"] for row in rows}:  # type: ignore[attr-defined]
            found = _json(capsys, place, "--key", json.dumps({"customerId": customer}))["rows"]
            assert found == [row for row in rows if row["key"]["customerId"] == customer]  # type: ignore[attr-defined]
    place = str(golden / "windowed" / "checkpoint")
    window = _json(capsys, place)["rows"][0]["key"]["window"]  # type: ignore[index]
    assert _json(capsys, place, "--key", json.dumps({"window": window}))["rows"]
    assert run(["state", place, "--key", '{"customerId": "nobody"}']) == 1
    assert "no such key" in capsys.readouterr().err
    assert run(["state", place, "--key", '{"customerId": 3}']) == 2
    assert "3 is not a STRING" in capsys.readouterr().err


def test_a_key_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["state", SALES, "--key", '{"customerId": "nobody"}', "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["rows"] == []
    assert "no such key" in printed.err


def test_stats(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, SALES, "--stats")
    assert list(found) == ["keys", "bytes", "partitions", "skew"]
    partitions = found["partitions"]
    assert found["keys"] == 5 == sum(part["keys"] for part in partitions)  # type: ignore[attr-defined]
    assert found["skew"] == 1.2
    assert run(["state", SALES, "--stats"]) == 0
    assert "█" in capsys.readouterr().out


def test_export_holds_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "state.parquet"
    assert _json(capsys, SALES, "--export", str(target)) == {"file": str(target), "rows": 5}
    table = pq.read_table(target)
    assert table.column_names == ["partition", "key", "value"]
    assert table == floodmark.open(SALES).state(operator=0).to_arrow()


def test_changes(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, SALES, "--changes", "0..2")
    assert (found["added"], found["removed"]) == (2, 0)
    assert {change["change"] for change in found["first"]} <= {"added", "changed"}  # type: ignore[attr-defined]
    assert run(["state", SALES, "--changes", "0..2"]) == 0
    assert "2 keys added, 0 removed" in capsys.readouterr().out


def test_the_text_has_names_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["state", SALES, "--limit", "2"]) == 0
    text = capsys.readouterr().out
    assert "stateStoreSave 0, store default, after batch 2" in text
    assert "customerId" in text
    assert "… and more" in text


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ((STATELESS,), 1, "has no state"),
        ((SALES, "--operator", "7"), 2, "no operator 7"),
        ((SALES, "--store", "left"), 2, "no store 'left'"),
        ((SALES, "--batch", "99"), 1, "batch 99"),
        ((SALES, "--key", "c1"), 2, "not a JSON object"),
        ((SALES, "--key", '{"nothing": 1}'), 2, "fields do not fit"),
        ((SALES, "--stats", "--changes", "0..1"), 2, "different questions"),
        ((SALES, "--export", "rows.csv"), 2, "written as Parquet"),
        ((SALES, "--key-schema", "a INT"), 2, "go together"),
    ],
)
def test_wrong_questions(
    arguments: tuple[str, ...], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["state", *arguments]) == status
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""


def test_diff_counts_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", SALES, "--batches", "0..2", "--json"]) == 1
    state = json.loads(capsys.readouterr().out)["state"]
    assert [(one["operator"], one["store"]) for one in state] == [(0, "default")]
    assert state[0]["keys"]["added"] == 2
    assert run(["diff", SALES, SALES]) == 0


@pytest.mark.parametrize("option", [[], ["--stats"], ["--key", '{"customerId": "c1"}']])
@pytest.mark.parametrize(
    ("name", "file"),
    [("3.5/sales-hdfs", "state/0/*/3.delta"), ("4.0/sales-rocksdb", "state/0/*/3.zip")],
)
def test_a_file_that_is_cut_comes_with_what_to_do(
    name: str, file: str, option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = Path(SALES).parents[2] / name / "checkpoint"
    place = shutil.copytree(golden, tmp_path / "cp")
    for each in place.glob(file):
        each.write_bytes(each.read_bytes()[:30])
        Path(f"{each}.crc").unlink(missing_ok=True)
    assert run(["state", str(place), *option]) == 3
    *_, last = capsys.readouterr().err.strip().splitlines()
    assert last.strip().startswith("Restore it from a backup")


def test_a_schema_that_is_gone_is_not_to_be_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = Path(SALES).parents[2] / "3.5" / "sales-hdfs" / "checkpoint"
    place = shutil.copytree(golden, tmp_path / "cp")
    (place / "state/0/0/_metadata/schema").unlink()
    assert run(["state", str(place)]) == 0
    said = capsys.readouterr().out
    assert "Restore the file from a backup before the next start" in said
    assert "run the query once" not in said
    assert run(["state", str(place), "--key", '{"customerId": "c1"}']) == 2
    assert "--key-schema 'name STRING'" in capsys.readouterr().err


WINDOWED = str(Path(SALES).parents[1] / "windowed" / "checkpoint")


def test_windows_are_written_as_a_person_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["state", WINDOWED]) == 0
    assert re.search(r" \d{4}-\d\d-\d\d \d\d:\d\d – \d\d:\d\d UTC +c3 ", capsys.readouterr().out)
    row = _json(capsys, WINDOWED)["rows"][0]  # type: ignore[index]
    assert set(row["key"]["window"]) == {"start", "end"}


def test_changed_keys_can_be_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["state", WINDOWED, "--changes", "0..1"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "added  " in line]
    assert len(lines) == len(set(lines)) == 3
    assert any('customerId ""' in line for line in lines)


def test_cells_are_as_wide_as_the_terminal_lets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from floodmark.cli.text.render_state import cell

    monkeypatch.setenv("COLUMNS", "80")
    assert cell("x" * 90) == "x" * 47 + "…"
    monkeypatch.setenv("COLUMNS", "200")
    assert cell("x" * 90) == "x" * 90


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        ("2026-01-01T23:55:00", "2026-01-02T00:05:00", "2026-01-01 23:55 – 2026-01-02 00:05"),
        ("2026-01-01T00:00:01+00:00", "2026-01-01T00:01:00+00:00", None),
        (1, 2, "start 1, end 2"),
        ("first", "last", "start first, end last"),
    ],
)
def test_a_struct_of_start_and_end(start: object, end: object, shown: str | None) -> None:
    from floodmark.cli.text.render_state import cell

    expected = shown or "2026-01-01 00:00:01 – 00:01:00 UTC"
    assert cell({"start": start, "end": end}) == expected


def test_the_stats_of_a_join_count_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["state", str(Path(SALES).parents[1] / "join" / "checkpoint"), "--stats"]) == 0
    text = capsys.readouterr().out
    assert "5 rows in 2 partitions" in text
    assert "Other stores: right, " in text


def test_schemas_of_operators_stores_and_variables(capsys: pytest.CaptureFixture[str]) -> None:
    golden = Path(SALES).parents[1]
    assert run(["inspect", str(golden / "windowed" / "checkpoint"), "--schema"]) == 0
    assert capsys.readouterr().out == (
        "operator 0   stateStoreSave\n"
        "  default\n"
        "    key    window STRUCT<start: TIMESTAMP, end: TIMESTAMP> NOT NULL, customerId STRING\n"
        "    value  count BIGINT NOT NULL\n"
    )
    assert run(["inspect", str(golden / "join" / "checkpoint"), "--schema", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["latest_batch"] is not None
    assert {one["store"] for one in found["schemas"]} >= {"left-keyWithIndexToValue"}
    place = golden.parent / "4.2" / "transform-with-state" / "checkpoint"
    assert run(["inspect", str(place), "--schema", "--json"]) == 0
    schemas = json.loads(capsys.readouterr().out)["schemas"]
    kinds = {one["store"]: one["kind"] for one in schemas}
    assert kinds == {"total": "ValueState", "orders": "ListState", "byMinute": "MapState"}
    assert run(["inspect", STATELESS, "--schema"]) == 0
    assert capsys.readouterr().out == "The query keeps no state.\n"


_TEXTS = st.text(st.sampled_from("ab, "), max_size=120)


@given(_TEXTS, _TEXTS, _TEXTS, st.sampled_from([48, 60]))
def test_a_change_shows_what_has_changed(same: str, old: str, new: str, widest: int) -> None:
    """However long the values are: both sides of the arrow are never cut to the same text."""
    change = StateChange("changed", {"k": 1}, ({"v": same + old},), ({"v": same + new},))
    with mock.patch("floodmark.cli.text.render_state._widest", return_value=widest):
        before, _, after = render_state.before_after(change.before, change.after).partition(" → ")
    assert (before == after) == (old == new)
    assert max(len(before), len(after)) <= widest


def test_a_field_that_has_changed_has_its_name() -> None:
    rest = ", ".join(f"field{n} {n}" for n in range(30))
    one, other = ({"v": {"text": rest, "expires": n, "more": 1}} for n in (17950642, 17950643))
    change = StateChange("changed", {"k": 1}, (one,), (other,))
    shown = render_state.before_after(change.before, change.after)
    assert shown == "…expires 17950642, more 1 → …expires 17950643, more 1"


def test_one_key_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """A table of many rows cuts long values, and says so; the key that was asked for is whole."""
    place = str(Path(SALES).parents[1] / "transform-with-state" / "checkpoint")
    with mock.patch("floodmark.cli.text.render_state._widest", return_value=4):
        assert run(["state", place, "--store", "byMinute"]) == 0
        table = capsys.readouterr().out
        assert "…" in table
        assert "--json shows them whole" in table
        key = json.dumps(_json(capsys, place, "--store", "byMinute")["rows"][0]["key"])  # type: ignore[index]
        assert run(["state", place, "--store", "byMinute", "--key", key]) == 0
        assert "…" not in capsys.readouterr().out
