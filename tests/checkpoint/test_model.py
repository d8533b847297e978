from __future__ import annotations

import dataclasses

import pytest

import samples
from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.checkpoint.model import StateOperator
from floodmark.checkpoint.views.inspection import inspection, scan_entry


def test_where_the_stream_stands() -> None:
    found = samples.checkpoint(samples.sales(8))
    assert found.query_id == samples.QUERY_ID
    assert (found.latest_batch, found.committed_batch, found.in_flight_batch) == (7, 6, 7)
    assert found.batch_time_ms == samples.time_of(7)
    assert (found.offset_log_version, found.commit_log_version) == (1, 1)
    assert found.sources[0].offset == {"orders": {"0": 456, "1": 563}}
    assert found.unreadable == ()
    assert found.state_operators == (
        StateOperator(
            0, "stateStoreSave", "hdfs", 4, ("default",), 7, found.state_operators[0].bytes
        ),
    )
    described = len(samples.operator_metadata()) + len(samples.state_schema())
    assert found.state_operators[0].bytes == 4 * 7 * 50 + described


def test_it_is_frozen() -> None:
    found = samples.checkpoint(samples.sales(1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.path = "elsewhere"  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.offsets[0] = found.offsets[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("committed", "planned_ms", "committed_ms", "expected"),
    [
        ([0, 1], 5000, 9000, 9000),  # what the commit hands on
        ([0, 1], 9000, 5000, 9000),  # never back
        ([0], 5000, 9000, 5000),  # a rerun keeps its own
    ],
)
def test_the_watermark_the_next_batch_starts_with(
    committed: list[int], planned_ms: int, committed_ms: int, expected: int
) -> None:
    tree = samples.logs([0, 1], committed)
    tree["offsets/1"] = samples.offset_entry(1, "0", watermark_ms=planned_ms)
    tree[f"commits/{committed[-1]}"] = samples.commit_entry(committed_ms)
    assert samples.checkpoint(tree).watermark_ms == expected


def test_nothing_yet() -> None:
    found = samples.checkpoint({"metadata": b'{"id":"x"}'})
    assert (found.latest_batch, found.committed_batch, found.in_flight_batch) == (None, None, None)
    assert (found.watermark_ms, found.batch_time_ms, found.sources) == (None, None, ())
    assert dict(found.conf) == {}
    assert found.state_operators == ()


def pinned(partitions: int) -> dict[str, str]:
    return {"spark.sql.shuffle.partitions": str(partitions)}


def test_a_lost_partition_counts() -> None:
    """By its files the state would have three: Spark needs the four that the entry pins."""
    tree = samples.logs([0, 1], [0, 1])
    tree |= {f"state/0/{partition}/2.delta": b"x" for partition in (0, 1, 3)}
    assert samples.checkpoint(tree).state_operators[0].partitions == 4
    del tree["state/0/3/2.delta"]
    assert samples.checkpoint(tree).state_operators[0].partitions == 4


def test_stores_and_providers_are_told_by_the_files() -> None:
    tree = samples.logs([0, 1], [0, 1])
    tree["offsets/1"] = samples.offset_entry(1, "0", conf=pinned(3))
    for partition in range(3):
        for store in ("left-keyToNumValues", "right-keyToNumValues"):
            tree[f"state/0/{partition}/{store}/2.delta"] = b"x"
    tree["state/1/0/2_abc.zip"] = b"x"
    tree["state/1/0/2_abc.changelog"] = b"x"
    join, other = samples.checkpoint(tree).state_operators
    assert (join.provider, join.partitions, join.name) == ("hdfs", 3, None)
    assert join.stores == JOIN_STORES
    assert (other.provider, other.partitions, other.version) == ("rocksdb", 1, 2)


def test_partitions_left_behind_by_a_repartition_do_not_count() -> None:
    tree = samples.logs([0, 1], [0, 1])
    tree["offsets/1"] = samples.offset_entry(1, "0", conf=pinned(3))
    tree |= {f"state/0/{partition}/1.zip": b"x" for partition in range(5)}
    tree |= {f"state/0/{partition}/2.zip": b"x" for partition in range(3)}
    assert samples.checkpoint(tree).state_operators[0].partitions == 3


def test_an_operator_without_files_is_told_by_its_metadata() -> None:
    tree = samples.logs([0], [])
    tree["offsets/0"] = samples.offset_entry(0, "0", conf={})
    tree["state/0/_metadata/metadata"] = samples.operator_metadata(0, 6)
    (operator,) = samples.checkpoint(tree).state_operators
    assert (operator.partitions, operator.stores, operator.version) == (6, ("default",), None)
    assert operator.provider == "hdfs"


def test_a_wild_setting_is_no_partition_count() -> None:
    tree = samples.logs([0], [])
    tree["state/0/_metadata/metadata"] = b"?"
    conf = {"spark.sql.shuffle.partitions": "9" * 5000}
    tree["offsets/0"] = samples.offset_entry(0, "0", conf=conf)
    assert samples.checkpoint(tree).state_operators[0].partitions == 0


def test_a_rate_source_is_told_by_its_initial_file() -> None:
    tree = samples.logs([0], [0], offset=lambda _: "12\n12\n-")
    tree |= {"sources/0/0": b"v1\n1700000000000", "sources/2/0": b'\0v1\n{"t":{"0":1}}'}
    kinds = [source.kind for source in samples.checkpoint(tree).sources]
    assert kinds == ["rate", "memory", "kafka"]


def test_names_of_sources_stand_in_id() -> None:
    entry = b'v2\n{"batchTimestampMs":1}\norders:{"logOffset":12}\nclicks:-'
    found = samples.checkpoint(samples.logs([0], [0]) | {"offsets/0": entry})
    assert [(item.id, item.offset) for item in inspection(found).sources] == [
        ("orders", {"logOffset": 12}),
        ("clicks", None),
    ]


def test_what_a_scan_keeps() -> None:
    sound = scan_entry(samples.checkpoint(samples.sales(8)))
    assert (sound.committed_batch, sound.in_flight_batch, sound.findings) == (6, 7, ())
    broken = scan_entry(samples.checkpoint(samples.sales(8) | {"offsets/3": b"v1\n{"}))
    assert len(broken.findings) == 1
    assert broken.findings[0].startswith("offsets/3: ")
    failing = scan_entry(samples.checkpoint(samples.logs([5], [5])))
    assert "needs offsets/4" in failing.findings[0]
