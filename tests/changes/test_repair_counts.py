"""What a repair may repeat, in numbers: by the input folder where only a lost entry knew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import samples
from carried import GO
from floodmark import api
from rules.examples import golden

SEEN_S = 1_790_000_000


def a_file_stream(tmp_path: Path, *lost: str) -> Path:
    """Twelve batches of one file each; a thirteenth file has come since the last one."""
    input_folder = tmp_path / "in"
    for number in range(12):
        samples.write(input_folder, {f"{number:02}.json": b"{}"})
        os.utime(input_folder / f"{number:02}.json", (SEEN_S + number, SEEN_S + number))
    samples.write(input_folder, {"12.json": b"{}", "_temporary/x": b"{}"})
    os.utime(input_folder / "12.json", (SEEN_S * 2, SEEN_S * 2))
    os.utime(input_folder / "_temporary" / "x", (SEEN_S, SEEN_S))
    tree = {
        path: data.replace(
            b"file:///tmp/floodmark-golden/files/in", f"file://{input_folder}".encode()
        )
        for path, data in golden("3.5/files").items()
        if path not in lost
    }
    return samples.write(tmp_path / "cp", tree)


def stated(place: Path) -> list[dict[str, Any]]:
    repeats: list[dict[str, Any]] = api.repair(str(place)).plan.options["repeats"]
    return repeats


@pytest.mark.parametrize(
    ("lost", "count"), [(["sources/0/11"], 1), (["sources/0/10", "sources/0/11"], 2)]
)
def test_files_that_only_a_lost_entry_named(lost: list[str], count: int, tmp_path: Path) -> None:
    place = a_file_stream(tmp_path, *lost)
    assert stated(place) == [
        {"source": "0", "unit": "files", "at_most": count, "batches": [], "reaches": "stream"}
    ]
    words = api.repair(str(place)).plan.consequences[0].words
    assert f"at most {count} file{'s' * (count > 1)} of source 0" in words


def test_a_lost_compaction_is_told_by_the_entries_before_it(tmp_path: Path) -> None:
    place = a_file_stream(tmp_path, "sources/0/9.compact")
    assert [item["at_most"] for item in stated(place)] == [1]


def test_without_the_input_folder_the_number_is_not_known(tmp_path: Path) -> None:
    place = a_file_stream(tmp_path, "sources/0/11")
    (tmp_path / "in").rename(tmp_path / "moved")
    assert [item["at_most"] for item in stated(place)] == [None]
    words = api.repair(str(place)).plan.consequences[0].words
    assert "not known any more" in words


def test_the_batch_in_flight_is_planned_anew(tmp_path: Path) -> None:
    """Its files reach the state once, and a sink twice only if it has that batch."""
    place = a_file_stream(tmp_path, "sources/0/11", "commits/11")
    assert stated(place) == [
        {"source": "0", "unit": "files", "at_most": 1, "batches": [11], "reaches": "sink"}
    ]
    api.repair(str(place), accept=["repeats"], carrying=GO)
    found = api.inspect(str(place))
    assert (found.committed_batch, found.latest_batch) == (10, 10)
    assert api.doctor(str(place)) == ()


def test_a_lost_newest_entry_is_counted_by_the_list(tmp_path: Path) -> None:
    place = a_file_stream(tmp_path, "offsets/11")
    assert stated(place) == [
        {"source": "0", "unit": "files", "at_most": 1, "batches": [11], "reaches": "sink"}
    ]


def test_state_goes_back_rather_than_taking_files_twice(tmp_path: Path) -> None:
    tree = {path: data for path, data in golden("3.5/sales-hdfs").items() if path != "sources/0/2"}
    place = samples.write(tmp_path / "cp", tree)
    found = api.repair(str(place), accept=["repeats"], carrying=GO).plan.options["repeats"]
    assert [(item["batches"], item["reaches"]) for item in found] == [([2], "sink")]
    assert api.inspect(str(place)).committed_batch == 1
    assert api.doctor(str(place), 1.0) == ()


def test_records_of_kafka_are_counted(tmp_path: Path) -> None:
    tree = dict(golden("4.2/kafka"))
    newest = max(
        int(path.split("/")[1]) for path in tree if path.startswith("offsets/") and "/." not in path
    )
    for path in (f"commits/{newest}", f"commits/.{newest}.crc", "metadata", ".metadata.crc"):
        tree.pop(path, None)
    place = samples.write(tmp_path / "cp", tree)
    (found,) = stated(place)
    batches = api.batches(str(place))
    ends = [
        sum(end for topic in batch.sources[0].offset.values() for end in topic.values())
        for batch in batches[-2:]
    ]
    assert (found["unit"], found["at_most"]) == ("records", ends[1] - ends[0])
    assert found["at_most"] > 0
