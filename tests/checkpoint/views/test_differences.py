from __future__ import annotations

import samples
from floodmark.checkpoint.views.differences import Difference, diff_batches, diff_checkpoints


def test_a_checkpoint_does_not_differ_from_itself() -> None:
    tree = samples.sales()
    assert diff_checkpoints(samples.checkpoint(tree), samples.checkpoint(tree)) == ()


def test_two_checkpoints() -> None:
    left = samples.checkpoint(samples.sales(8))
    right = samples.checkpoint(
        samples.sales(8) | {"commits/7": samples.commit_entry(9), "metadata": b'{"id":"other"}'}
    )
    assert diff_checkpoints(left, right) == (
        Difference("query_id", samples.QUERY_ID, "other"),
        Difference("committed_batch", 6, 7),
        Difference("in_flight_batch", 7, None),
        Difference("watermark_ms", 0, 9),
    )


def test_a_partition_that_moved() -> None:
    left = samples.logs([0], [0], offset=lambda _: '{"t":{"0":1,"1":5},"u":{"0":1}}')
    right = samples.logs([0], [0], offset=lambda _: '{"t":{"1":5,"0":2,"2":0}}')
    found = diff_checkpoints(samples.checkpoint(left), samples.checkpoint(right))
    assert found == (
        Difference("source 0 t 0", 1, 2),
        Difference("source 0 t 2", None, 0),
        Difference("source 0 u 0", 1, None),
    )


def test_the_order_of_keys_is_no_difference() -> None:
    left = samples.logs([0], [0], offset=lambda _: '{"t":{"0":1,"1":5}}')
    right = samples.logs([0], [0], offset=lambda _: '{ "t": {"1": 5, "0": 1} }')
    assert diff_checkpoints(samples.checkpoint(left), samples.checkpoint(right)) == ()


def test_sources_of_another_kind_or_number() -> None:
    left = samples.logs([0], [0], offset=lambda _: '{"logOffset":1}\n4')
    right = samples.logs([0], [0], offset=lambda _: '{"t":{"0":1}}')
    assert diff_checkpoints(samples.checkpoint(left), samples.checkpoint(right)) == (
        Difference("source 0 kind", "file", "kafka"),
        Difference("source 1", "memory", None),
    )


def test_settings_and_state() -> None:
    left, right = samples.sales(2, partitions=4), samples.sales(2, partitions=2)
    conf = {"spark.sql.shuffle.partitions": "2", "new": "1"}
    right["offsets/1"] = samples.offset_entry(1, samples.kafka_offset(1), conf=conf)
    found = {
        item.where: (item.left, item.right)
        for item in diff_checkpoints(samples.checkpoint(left), samples.checkpoint(right))
    }
    assert found["conf spark.sql.shuffle.partitions"] == ("4", "2")
    assert found["conf new"] == (None, "1")
    assert found["state 0"] == (
        "stateStoreSave, hdfs, 4 partitions, stores default",
        "stateStoreSave, hdfs, 2 partitions, stores default",
    )


def test_two_batches_of_one() -> None:
    found = samples.checkpoint(samples.logs(range(3), range(2)))
    assert diff_batches(found, 1, 2) == (
        Difference("committed", True, False),
        Difference("batch_timestamp_ms", samples.time_of(1), samples.time_of(2)),
        Difference("source 0 orders 0", 408, 416),
        Difference("source 0 orders 1", 509, 518),
    )
    assert diff_batches(found, 1, 1) == ()


def test_continuous_batches_have_no_metadata_to_compare() -> None:
    tree = samples.logs(range(2), range(2))
    for batch in range(2):
        tree[f"offsets/{batch}"] = b'v1\n\n{"0":{"value":%d,"runTimeMs":1}}' % batch
    (found,) = diff_batches(samples.checkpoint(tree), 0, 1)
    assert found.where == "source 0 0"
    assert found.left == {"value": 0, "runTimeMs": 1}


def test_a_delta_source_differs_by_field() -> None:
    moved = samples.DELTA_OFFSET.replace('"reservoirVersion":7', '"reservoirVersion":8')
    left = samples.checkpoint(samples.logs([0], [0], offset=lambda _: samples.DELTA_OFFSET))
    right = samples.checkpoint(samples.logs([0], [0], offset=lambda _: moved))
    assert diff_checkpoints(left, right) == (Difference("source 0 reservoirVersion", 7, 8),)
