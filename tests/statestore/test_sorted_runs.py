"""Rows that wait on disk for their partition: all come out, and memory holds a piece of them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from floodmark.state.files.records import Records
from floodmark.state.rows.rowbytes import from_binary
from floodmark.statestore.rewrite.sorted_runs import Runs

GOALS, RUNS, ROWS = 3, 40, 10_000
WIDE = b"v" * 200


def _mapped_mb() -> float:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) / 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux what is mapped")
def test_what_was_read_does_not_stay_in_memory(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "runs", GOALS)
    values = from_binary(pa.array([WIDE] * ROWS, pa.binary()))
    for number in range(RUNS):
        keys = [b"%d" % (number * ROWS + row) for row in range(ROWS)]
        records = Records(from_binary(pa.array(keys, pa.binary())), values, np.zeros(ROWS, bool))
        runs.add(records, np.arange(ROWS) % GOALS)
    runs.close()
    assert (tmp_path / "runs").stat().st_size > 80e6
    before, most, found = _mapped_mb(), 0.0, set()
    for goal in range(GOALS):
        for records in runs.rows(goal):
            found.update(records.keys.to_list())
            most = max(most, _mapped_mb())
    assert len(found) == RUNS * ROWS
    assert most - before < 40
