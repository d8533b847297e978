"""`rewind --to-offsets`: what a file does not name stays where it is, or the file is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import floodmark
import samples
from floodmark.changes.plan import Plan
from floodmark.checkpoint.offsets import parse_offsets
from floodmark.errors import FloodmarkError, MalformedFile, WrongUse

KAFKA = '{"orders":{"0":23,"1":41},"clicks":{"0":7}}'
SHARD = {"iteratorType": "AFTER_SEQUENCE_NUMBER", "iteratorPosition": "4960"}


def stream(folder: Path, *lines: str | None) -> Path:
    tree = samples.logs(range(4), range(4))
    for batch in range(4):
        tree[f"offsets/{batch}"] = samples.offset_entry(
            batch, *("-" if x is None else x for x in lines)
        )
    return samples.write(folder / "cp", tree)


def plan(cp: Path, given: Any) -> Plan:
    file = cp.parent / "given.json"
    file.write_text(given if isinstance(given, str) else json.dumps(given))
    accept = ["skips", "out-of-reach"]
    return floodmark.rewind(str(cp), to_offsets=str(file), accept=accept).plan


def planned(made: Plan) -> list[str | None]:
    """The offsets that the plan writes for the last batch."""
    (entry,) = [step for step in made.steps if step.path == "offsets/3"]
    assert entry.data is not None
    return [text for _, text in parse_offsets(entry.data).offsets]


def shards(*positions: str) -> list[dict[str, Any]]:
    return [
        {"shard": {"stream": "s", "shardId": f"shardId-{at}"}, "lastSeqNum": last, "closed": False}
        for at, last in enumerate(positions)
    ]


@pytest.mark.parametrize(
    ("held", "given", "wanted", "stays"),
    [
        (
            KAFKA,
            {"orders": {"1": 5}},
            '{"orders":{"0":23,"1":5},"clicks":{"0":7}}',
            "orders partition 0, topic clicks stay where they are",
        ),
        (
            '{"eh":{"0":23,"1":-1},"other":{"0":4}}',
            {"eh": {"0": 5}},
            '{"eh":{"0":5,"1":-1},"other":{"0":4}}',
            "eh partition 1, hub other stay where they are",
        ),
        (
            '{"persistent://a/b/c":[8,10,16,3],"persistent://a/b/d":[8,10,16,4]}',
            {"persistent://a/b/c": [8, 10, 16, 1]},
            '{"persistent://a/b/c":[8,10,16,1],"persistent://a/b/d":[8,10,16,4]}',
            "topic persistent://a/b/d stays where it is",
        ),
        (
            json.dumps({"metadata": {"streamName": "s", "batchId": "7"}, "a": SHARD, "b": SHARD}),
            {"b": {**SHARD, "iteratorPosition": "1"}},
            json.dumps(
                {
                    "metadata": {"streamName": "s", "batchId": "7"},
                    "a": SHARD,
                    "b": {**SHARD, "iteratorPosition": "1"},
                }
            ),
            "shard a",
        ),
        (
            json.dumps(shards("40", "50"), separators=(",", ":")),
            shards("40", "9")[1:],
            json.dumps(shards("40", "9"), separators=(",", ":")),
            "shard s shardId-0 stays where it is",
        ),
        (
            '{"orders":{"broker-a":{"0":23,"1":41},"broker-b":{"0":7}}}',
            {"orders": {"broker-a": {"1": 1}}},
            '{"orders":{"broker-a":{"0":23,"1":1},"broker-b":{"0":7}}}',
            "orders broker-a queue 0, orders broker broker-b stay where they are",
        ),
        (
            '{"offsets":{"a":{"groupName":"g","offset":"5-0"},"b":{"groupName":"g","offset":"6-0"}}}',
            {"offsets": {"a": {"groupName": "g", "offset": "1-0"}}},
            '{"offsets":{"a":{"groupName":"g","offset":"1-0"},"b":{"groupName":"g","offset":"6-0"}}}',
            "offsets stream b stays where it is",
        ),
        (
            '{"0":{"value":7,"runTimeMs":1},"1":{"value":9,"runTimeMs":1}}',
            {"1": {"value": 2, "runTimeMs": 1}},
            '{"0":{"value":7,"runTimeMs":1},"1":{"value":2,"runTimeMs":1}}',
            "field 0 stays where it is",
        ),
        (
            '{"seqNum":23,"sourceVersion":1,"lastBackfillStartTimeMs":5}',
            {"seqNum": 2, "sourceVersion": 1},
            '{"seqNum":2,"sourceVersion":1,"lastBackfillStartTimeMs":5}',
            "field lastBackfillStartTimeMs stays where it is",
        ),
    ],
    ids=[
        "kafka",
        "hubs",
        "pulsar",
        "kinesis",
        "databricks",
        "rocketmq",
        "redis",
        "rate",
        "auto-loader",
    ],
)
def test_what_a_file_does_not_name_stays(
    held: str, given: Any, wanted: str, stays: str, tmp_path: Path
) -> None:
    """Every kind whose offset has parts: none of them is forgotten, and the plan says so."""
    made = plan(stream(tmp_path, held), {"0": given})
    assert planned(made) == [wanted]
    assert any(stays in note for note in made.notes), made.notes


def test_sources_that_a_file_does_not_name_stay(tmp_path: Path) -> None:
    cp = stream(tmp_path, KAFKA, samples.DELTA_OFFSET, None)
    made = plan(cp, {"orders": {"0": 1}})
    assert planned(made) == [KAFKA.replace("23", "1"), samples.DELTA_OFFSET, None]
    assert any("Source 1 (delta) stays where it is" in note for note in made.notes)


def test_what_offsets_prints_is_taken_with_a_source_that_has_read_nothing(tmp_path: Path) -> None:
    cp = stream(tmp_path, KAFKA, None)
    given = {
        "sources": [
            {"id": one.id, "offset": one.offset} for one in floodmark.offsets(str(cp)).sources
        ]
    }
    given["sources"][0]["offset"] = {"clicks": {"0": 3}}
    assert planned(plan(cp, given)) == [KAFKA.replace("7", "3"), None]
    given["sources"][1]["offset"] = {"orders": {"0": 3}}
    with pytest.raises(WrongUse, match="source 1 has no offset yet"):
        plan(cp, given)


def test_a_start_file_places_every_kafka_source(tmp_path: Path) -> None:
    """Each of its entries counts, not the first alone; one that fits nothing is refused."""
    cp = stream(tmp_path, '{"orders":{"0":23}}', '{"clicks":{"0":7}}')
    entries = [
        {"kind": "kafka", "offsets": {"orders": {"0": 2}}},
        {"kind": "kafka", "offsets": {"clicks": {"0": 3}}},
    ]
    start = {"floodmark": "start", "version": 1, "sources": entries}
    assert planned(plan(cp, start)) == ['{"orders":{"0":2}}', '{"clicks":{"0":3}}']
    for other in ({"kind": "delta", "version": 3, "index": -1}, "x"):
        with pytest.raises(MalformedFile, match="no offsets for this checkpoint"):
            plan(cp, {**start, "sources": [entries[0], other]})


@pytest.mark.parametrize(
    ("held", "given", "words"),
    [
        (samples.DELTA_OFFSET, '{"reservoirId":"4c1f","reservoirVersion":3}', "leaves out"),
        ('{"a":1,"b":2}', '{"a":1}', "leaves out b"),
        ('{"cursors": {"a": 1, "b": 2}}', '{"cursors": {"a": 1}}', "leaves out cursors b"),
        ('{"commitTime":"20"}', '{"offsetCommitTime":"10"}', "leaves out commitTime"),
        ('{"_data": "8263"}', '{"version":1,"offset":{"_data":"82"}}', "leaves out _data"),
        ('{"a":1}', "[1]", "not an offset of that kind"),
        ('{"a":1}', "null", "not an offset of that kind"),
        ('{"eh":{"0":23,"1":-1}}', '{"eh":{"0":-2}}', "eh partition 0 is -2"),
        ('{"eh":{"0":23,"1":-1}}', '{"eh":{"7":2}}', "eh has no partition 7"),
        ('{"persistent://a/b/c":[8,1,16,3]}', '{"persistent://x/y/z":[8,1,16,1]}', "has no topic"),
        (json.dumps(shards("4")), json.dumps(shards("1", "2")[1:]), "has no shard s shardId-1"),
        (json.dumps(shards("4")), json.dumps(shards("1") * 2), "more than once"),
        (json.dumps(shards("4")), json.dumps({"a": SHARD}), "not an offset of that kind"),
        ('{"t":{"b":{"0":2}}}', '{"t":{"c":{"0":2}}}', "t has no broker c"),
        ('{"offset":9,"timestamp":1}', '{"0":{"value":2,"runTimeMs":1}}', "has no field 0"),
        ('{"0":{"value":2,"runTimeMs":1}}', '{"5":{"value":2,"runTimeMs":1}}', "has no field 5"),
        ("at-7", '"-"', "would be read as something else"),
        ("at-7", '"7"', "would be read as something else"),
        ("at-7", '"at-\\n6"', "would be read as something else"),
        (KAFKA, '{"orders":{"0":1},"orders":{"1":2}}', "'orders' stands twice"),
        (KAFKA, '{"orders":{"0":1,"0":2}}', "'0' stands twice"),
    ],
)
def test_what_would_be_lost_or_is_not_there_is_refused(
    held: str, given: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(FloodmarkError) as refused:
        plan(stream(tmp_path, held), f'{{"0": {given}}}')
    assert words in f"{refused.value.what} {refused.value.why}"
    assert refused.value.status in (2, 3)


def test_one_source_is_not_given_two_offsets(tmp_path: Path) -> None:
    twice = [{"id": "0", "offset": {"orders": {"0": at}}} for at in (1, 2)]
    with pytest.raises(WrongUse, match="one source is given two offsets"):
        plan(stream(tmp_path, KAFKA), {"sources": twice})


def test_a_place_says_no_more_of_another(tmp_path: Path) -> None:
    """Iceberg's time of a snapshot is of that snapshot, and goes with it."""
    held = (
        '{"version":1,"snapshot_id":81,"position":3,"scan_all_files":false,'
        '"snapshot_timestamp_ms":1794807601000,"snapshot_total_rows":400}'
    )
    given = {"version": 1, "snapshot_id": 7, "position": 0, "scan_all_files": False}
    made = plan(stream(tmp_path, held), {"0": given})
    assert planned(made) == [json.dumps(given, separators=(",", ":"))]


def test_a_sources_own_way_of_writing_is_kept(tmp_path: Path) -> None:
    """It compares offsets by their text: spaces that it puts are put."""
    assert planned(
        plan(stream(tmp_path, '{"pos": 2, "tag": "x"}'), {"0": {"pos": 1, "tag": "x"}})
    ) == ['{"pos": 1, "tag": "x"}']


def test_a_text_that_is_no_json_stays_one(tmp_path: Path) -> None:
    assert planned(plan(stream(tmp_path, "at-7"), {"0": "at-6"})) == ["at-6"]
    assert planned(plan(stream(tmp_path / "json", '"at-7"'), {"0": "at-6"})) == ['"at-6"']


def test_events_ahead_are_said_to_be_left_out(tmp_path: Path) -> None:
    cp = stream(tmp_path, '{"eh":{"0":23,"1":-1}}')
    told = [one.words for one in plan(cp, {"0": {"eh": {"0": 30, "1": 4}}}).consequences]
    assert "never gets the events of eh partition 0 from number 23 to 29" in told
    assert "never gets the events of eh partition 1 from the first to 3" in told
