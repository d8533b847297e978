"""The records that every mutated query reads: one file before the change, two after it."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

SCHEMA = (
    "k STRING, g STRING, v LONG, w LONG, x DOUBLE, at TIMESTAMP, seen TIMESTAMP, "
    "xs ARRAY<STRING>, ys ARRAY<STRING>, js STRING, cs STRING, day STRING, clock STRING"
)
CSV_SCHEMA = "k STRING, v LONG, w LONG, day STRING"
BEFORE, AFTER = (0,), (1, 2)
_BEGIN = datetime(2026, 1, 1, 23, 40)
# The first file's windows stay open until the third; in the second, one record is late, and the
# last one moves the watermark past everything.
_MINUTES = (
    (0, 3, 4, 8, 6, 1, 5, 9, 12, 15, 7, 10),
    (1, 11, 14, 22, 13, 16, 18, 60),
    (44, 58, 63, 95, 97, 99),
)
_KEYS = ("a", "b", "A", "a", None, "c")
_GROUPS = ("p", "a", "b", "q", "p", "p")


def _row(file: int, at: int, shift: int) -> dict[str, Any]:
    minutes = _MINUTES[file][at] + shift
    moment = _BEGIN + timedelta(minutes=minutes)
    seen = moment + timedelta(minutes=(7 * at + 3 * file) % 11)
    # Duplicates before and after the change: the same small numbers come in each file.
    value = (at * 5 + file % 2 + shift) % 7
    other = at * 10 + file * 100 + shift
    return {
        "k": _KEYS[at % 6],
        "g": _GROUPS[(at + file) % 6],
        "v": None if (at, file) in ((3, 0), (0, 1)) else value,
        "w": other,
        "x": value * 1.5 + file,
        "at": f"{moment:%Y-%m-%dT%H:%M:%S}Z",
        "seen": f"{seen:%Y-%m-%dT%H:%M:%S}Z",
        "xs": ["p", "q", "r"][at % 3 :],
        "ys": ["q", "s"][: (at + file) % 3],
        "js": json.dumps({"a": value, "b": other, "d": f"0{file + 1}/{at + 1:02}/2026", "c": "z"}),
        "cs": f"{_KEYS[at % 6]},{value},{other}",
        "day": f"0{file + 1}/{at + 1:02}/2026",
        "clock": f"{moment:%Y-%m-%d %H:%M:%S}",
    }


def put(folder: Path, files: tuple[int, ...]) -> None:
    """Files of JSON lines and of CSV, older ones with earlier times."""
    for shift, name in enumerate(("events", "others")):
        for file in files:
            rows = [_row(file, at, shift) for at in range(len(_MINUTES[file]))]
            when = 1_750_000_000 + 1000 * file
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            _write(folder / name / f"{file}.json", lines, when)
            if shift == 0:
                head = "k,v,w,day\n"
                body = "".join(
                    f"{row['k'] or ''},{'' if row['v'] is None else row['v']},{row['w']},"
                    f"{row['day']}\n"
                    for row in rows
                )
                _write(folder / "tables" / f"{file}.csv", head + body, when)


def put_table(folder: Path) -> None:
    """A static table of CSV."""
    _write(folder / "rates" / "rates.csv", "a,7,70\nb,9,90\nc,11,110\n", 1_750_000_000)


def _write(path: Path, text: str, when: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.tmp")
    hidden.write_text(text)
    os.utime(hidden, (when, when))
    hidden.rename(path)
