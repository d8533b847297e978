"""An open Kafka transaction is no end of a partition; tests/integration asks a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import floodmark
import samples
from floodmark.checkpoint.live_answers import Bounds
from floodmark.connectors.behind import SourceLag
from floodmark.connectors.kafka.reach import KafkaTrouble, shortfalls

OPEN = Bounds(0, 4, 2)
"""Four records, of which two belong to a transaction that is open."""


class OneTopic:
    """Answers as a cluster with one topic."""

    def __init__(self, *_: object) -> None:
        pass

    def bounds(self, topics: Iterable[str]) -> dict[str, dict[int, Bounds]]:
        return {"orders": {0: OPEN}} if "orders" in topics else {}

    def retention(self, topics: Iterable[str]) -> dict[str, Any]:
        return {}

    def first_records(self, ranges: Mapping[Any, tuple[int, int]]) -> dict[Any, Any]:
        return {}


def behind(folder: Path, offset: int, isolation: str | None) -> SourceLag:
    tree = samples.logs(range(2), range(2), lambda batch: f'{{"orders":{{"0":{offset}}}}}')
    options = {} if isolation is None else {"kafka.isolation.level": isolation}
    note = {"sources": [{"kind": "kafka", "options": options}]}
    tree["_floodmark/starts/0.json"] = json.dumps(note).encode()
    cp = samples.write(folder / "cp", tree)
    [source] = floodmark.lag(str(cp), bootstrap_servers="127.0.0.1:1").sources
    return source


@pytest.mark.parametrize(
    ("offset", "isolation", "records", "end", "counted"),
    [
        (1, None, 3, 4, "to the ends of the partitions"),
        (1, "read_uncommitted", 3, 4, "to the ends of the partitions"),
        (4, None, 0, 4, "to the ends of the partitions"),
        (1, "read_committed", 1, 2, "up to them, because the stream reads only committed records"),
        (2, "read_committed", 0, 2, "up to them, because the stream reads only committed records"),
        # It has read all records once, and may read committed ones alone now: nothing is lost.
        (4, "read_committed", 0, 2, "up to them, because the stream reads only committed records"),
    ],
)
def test_lag_is_counted_to_where_the_stream_can_read(
    offset: int,
    isolation: str | None,
    records: int,
    end: int,
    counted: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("floodmark.connectors.kafka.lag.Admin", OneTopic)
    source = behind(tmp_path, offset, isolation)
    assert (source.behind.records, source.parts[0].end, source.lost) == (records, end, 0)
    [said] = [note for note in source.notes if "Transactions are open" in note]
    assert said.startswith("Transactions are open in orders partition 0 from offset 2. Lag is ")
    assert counted in said
    assert not any("recreated" in note for note in source.notes)


@pytest.mark.parametrize(
    ("offset", "trouble"), [(0, None), (2, None), (3, None), (4, None), (5, KafkaTrouble.AHEAD)]
)
def test_only_the_end_of_all_records_is_the_end(offset: int, trouble: KafkaTrouble | None) -> None:
    found = [one.trouble for one in shortfalls({"orders": {0: offset}}, {"orders": {0: OPEN}})]
    assert found == ([] if trouble is None else [trouble])


def test_where_reading_stops() -> None:
    assert [OPEN.readable(committed) for committed in (False, True)] == [4, 2]
    assert Bounds(0, 4).readable(committed=True) == 4  # nobody asked for the other
