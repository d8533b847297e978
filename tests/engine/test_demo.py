"""The demonstration does what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import samples
from demonstration import Demo
from floodmark import api
from floodmark.engine.demo.orders import CUSTOMERS, HEADER, ROWS, write_orders
from floodmark.engine.demo.story import VICTIM, prepare_folder, timeline
from floodmark.engine.pipelines.application import load_application
from floodmark.errors import WrongUse
from rules.examples import golden


def test_its_orders_are_always_the_same(tmp_path: Path) -> None:
    assert write_orders(tmp_path / "a", range(2)) == 2 * ROWS
    write_orders(tmp_path / "b", range(1, 2))
    first, second = sorted((tmp_path / "a").iterdir())
    assert first.read_text() != second.read_text()
    assert second.read_text() == (tmp_path / "b" / second.name).read_text()
    lines = second.read_text().splitlines()
    assert lines[0] + "\n" == HEADER
    assert len({line.split(",")[1] for line in lines[1:]}) == CUSTOMERS


def test_it_replaces_its_own_folder_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    prepare_folder(folder)
    (folder / "old").touch()
    prepare_folder(folder)
    assert not (folder / "old").exists()
    assert "from floodmark import pipeline\n" in (folder / "sales.py").read_text()
    assert [one.name for one in load_application(str(folder / "sales.py")).pipelines] == ["sales"]
    with pytest.raises(WrongUse, match="not an earlier demonstration"):
        prepare_folder(tmp_path)


def test_the_timeline_needs_no_report_of_the_runtime(tmp_path: Path) -> None:
    """A kill between a commit and its report loses the report, not the number of orders."""
    tree = {
        path: data.replace(b"/tmp/floodmark-golden/files/in", f"{tmp_path}/in".encode())
        for path, data in golden("3.5/files").items()
    }
    place = samples.write(tmp_path / "cp", tree)
    seen = api.files(str(place))
    (tmp_path / "in").mkdir()
    for file in seen:
        path = tmp_path / "in" / file.path.rsplit("/", 1)[1]
        path.write_text(HEADER + "t,c,i,1.00\n" * (file.log_id + 1))
    rows = {batch.batch: batch.rows for batch in timeline(place)}
    assert rows == {batch: batch + 1 for batch in range(12)}


@pytest.mark.spark
def test_killed_in_the_middle_of_a_batch_nothing_is_lost(demo: Demo) -> None:
    assert demo.status == 0, demo.err
    story = json.loads(demo.out)
    assert story["equal"]
    assert story["batch_query_total"] == story["stream_total"]
    # Two files a batch, or one more batch where the last files came apart.
    count = len(story["batches"])
    assert count in (6, 7)
    assert [batch["batch"] for batch in story["batches"]] == list(range(count))
    assert [batch["run"] for batch in story["batches"]] == [1] * VICTIM + [2] * (count - VICTIM)
    assert story["orders"] == 12 * ROWS
    assert sum(batch["rows"] for batch in story["batches"]) == story["orders"]
    assert f"batch {VICTIM} is in flight" in demo.err
    assert (demo.cwd / "data/demo/checkpoints/sales/commits/5").exists()
