"""The state of every golden checkpoint, beside what its own Spark's reader said it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from floodmark import api

GOLDEN = Path(__file__).parents[1] / "golden"


def _cases() -> list[Any]:
    cases = []
    for expected in sorted(GOLDEN.glob("*/*/expected.json")):
        stores = json.loads(expected.read_text()).get("state_rows") or {}
        name = f"{expected.parts[-3]}-{expected.parts[-2]}"
        cases += [pytest.param(expected, store, id=f"{name}-{store}") for store in stores]
    return cases


def _comparable(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)


def _as_pairs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spark gives a list's and a map's parts columns of their own; ours stand in the value."""
    whole = {"key", "partition_id"}
    return [
        row
        if "value" in row
        else {
            **{name: row[name] for name in whole},
            "value": {name: part for name, part in row.items() if name not in whole},
        }
        for row in rows
    ]


def _times(value: Any) -> Any:
    """Both as UTC to the millisecond."""
    if isinstance(value, dict):
        return {key: _times(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_times(item) for item in value]
    if isinstance(value, str) and value[10:11] in ("T", " ") and value[:4].isdecimal():
        return value.replace(" ", "T").removesuffix("Z").removesuffix("+00:00")[:19]
    return value


def test_there_are_golden_states() -> None:
    assert len(_cases()) > 40


@pytest.mark.parametrize(("expected", "store"), _cases())
def test_the_rows_are_sparks(expected: Path, store: str) -> None:
    said = json.loads(expected.read_text())["state_rows"][store]
    operator, _, name = store.partition("/")
    view = api.state(str(expected.parent / "checkpoint"), int(operator), name)
    ours = [{"partition_id": row.pop("partition"), **row} for row in view.rows()]
    assert _comparable(_times(ours)) == _comparable(_times(_as_pairs(said)))


def test_zips_whose_version_line_says_v2() -> None:
    """Spark 4.0 can write them and no later Spark reads them; the rows are the same sums."""
    folder = GOLDEN / "4.0"
    alone = api.state(str(folder / "sales-format-2-alone" / "checkpoint")).rows()
    usual = api.state(str(folder / "sales-format-2" / "checkpoint")).rows()
    assert len(alone) == 5
    assert _comparable(alone) == _comparable(usual)
