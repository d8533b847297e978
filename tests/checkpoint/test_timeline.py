from __future__ import annotations

import samples
from floodmark.checkpoint.timeline import Status, timeline


def _statuses(planned: list[int], committed: list[int]) -> dict[int, str]:
    found = timeline(samples.checkpoint(samples.logs(planned, committed)))
    return {batch.batch: batch.status.value for batch in found}


def test_each_batch_and_what_became_of_it() -> None:
    assert _statuses([2, 3, 4, 5], [1, 2, 3]) == {
        1: "offset-purged",
        2: "committed",
        3: "committed",
        4: "uncommitted-gap",
        5: "in-flight",
    }


def test_async_progress_leaves_holes_that_are_no_damage() -> None:
    assert set(_statuses([0, 3, 7, 10], [0, 3, 7, 10]).values()) == {"committed"}


def test_times_watermarks_and_offsets() -> None:
    tree = samples.logs([0, 1], [0])
    tree["offsets/1"] = samples.offset_entry(1, samples.kafka_offset(1), watermark_ms=5000)
    first, second = timeline(samples.checkpoint(tree))
    assert (first.time_ms, first.watermark_ms) == (samples.time_of(0), 0)
    assert (second.time_ms, second.watermark_ms) == (samples.time_of(1), 5000)
    assert second.sources[0].offset == {"orders": {"0": 408, "1": 509}}


def test_only_the_newest_few() -> None:
    found = samples.checkpoint(samples.logs(range(8), range(7)))
    assert [batch.batch for batch in timeline(found, 3)] == [5, 6, 7]
    assert [batch.batch for batch in timeline(found, 99)] == list(range(8))
    assert timeline(found, 0) == ()


def test_a_batch_that_cannot_be_read_keeps_its_place() -> None:
    tree = samples.logs(range(3), range(3))
    tree["offsets/1"] = b"v1\n{"
    found = samples.checkpoint(tree)
    batch = timeline(found)[1]
    assert (batch.batch, batch.status, batch.time_ms) == (1, Status.COMMITTED, None)
    assert batch.sources == ()
    assert [item.path for item in found.unreadable] == ["offsets/1"]


def test_continuous_mode_has_no_times() -> None:
    tree = samples.logs([0], [0]) | {"offsets/0": b'v1\n\n{"0":{"value":7,"runTimeMs":1}}'}
    (batch,) = timeline(samples.checkpoint(tree))
    assert (batch.time_ms, batch.watermark_ms) == (None, None)
