"""The views of one checkpoint: protocol, bars, state, files, retention, alerts, next steps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import samples
from floodmark.checkpoint.timeline import Status
from floodmark.fleet.alerts import changes, falls_behind, troubles
from floodmark.fleet.anatomy import Reads, anatomy
from floodmark.fleet.batch_bars import batch_bars, marks
from floodmark.fleet.card import (
    FindingCounts,
    FleetCard,
    bounded,
    group_of,
    name_of,
    superseded,
)
from floodmark.fleet.next_steps import next_steps
from floodmark.fleet.progress_lines import ProgressLine, by_batch, parse_lines
from floodmark.fleet.protocol import StepState, protocol_steps
from floodmark.fleet.pulse import StreamHealth
from floodmark.fleet.retention import PartSample, overtaking
from floodmark.fleet.state_map import heat_maps, restart_load
from floodmark.storage.files import open_files
from floodmark.storage.load import Entries, load

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
HOUR = 3_600_000


def held(tree: dict[str, bytes]):  # type: ignore[no-untyped-def]
    return load(samples.HeldFiles(tree), Entries.ALL)


def test_the_protocol_stands_at_the_step_that_the_files_show() -> None:
    done = protocol_steps(held(samples.sales(8, in_flight=False)))
    assert [step.state for step in done] == [StepState.DONE] * 3
    assert "goes on with batch 8" in done[2].words
    flight = protocol_steps(held(samples.sales(8)))
    assert [step.state for step in flight] == [StepState.DONE, StepState.NOW, StepState.WAITING]
    assert flight[0].file == "offsets/7"
    assert "runs batch 7 again over the same offsets" in flight[2].words
    empty = protocol_steps(held({"metadata": b'{"id":"a"}', "offsets/x": b""}))
    assert [step.state for step in empty] == [StepState.WAITING] * 3


def test_a_bar_goes_from_planned_to_committed_and_is_hollow_in_flight() -> None:
    checkpoint = held(samples.logs(range(4), range(3)))
    files = tuple(
        file._replace(mtime_ms=samples.time_of(int(file.path.split("/")[1])) + 2500)
        if file.path.startswith("commits/")
        else file._replace(mtime_ms=samples.time_of(int(file.path.split("/")[1])))
        if file.path.startswith("offsets/")
        else file
        for file in checkpoint.files
    )
    bars = batch_bars(replace(checkpoint, files=files), {})
    assert [bar.duration_ms for bar in bars] == [2500, 2500, 2500, None]
    assert {bar.source for bar in bars[:3]} == {"files"}
    assert bars[3].status is Status.IN_FLIGHT
    assert bars[3].committed_ms is None


def test_a_copy_tells_no_durations() -> None:
    """All its files have one time, while the batches span minutes."""
    bars = batch_bars(held(samples.logs(range(9), range(9))), {})
    assert all(bar.duration_ms is None and bar.committed_ms is None for bar in bars)


def test_progress_lines_tell_sparks_own_durations() -> None:
    line = ProgressLine(1, "run", None, 777)
    bars = batch_bars(held(samples.logs(range(3), range(3))), by_batch([line]))
    assert (bars[1].duration_ms, bars[1].source) == (777, "progress")


def test_marks_for_restarts_code_and_spark() -> None:
    notes = [
        {"next_batch": 0, "spark_version": "4.1.0", "code_fingerprint": "a", "started_ms": 5},
        {"next_batch": 4, "spark_version": "4.1.0", "code_fingerprint": "b", "started_ms": 6},
        {"next_batch": 6, "spark_version": "4.2.0", "code_fingerprint": "b", "started_ms": 7},
        {"next_batch": "x", "spark_version": ["<script>"]},
    ]
    found = marks(held(samples.logs(range(8), range(8))), notes, (), ())
    assert [(mark.batch, mark.kind) for mark in found] == [
        (0, "restart"),
        (4, "code"),
        (4, "restart"),
        (6, "restart"),
        (6, "spark"),
    ]


def test_another_conf_is_a_mark_without_any_note() -> None:
    tree = samples.logs(range(4), range(4))
    more = samples.CONF | {"spark.sql.streaming.stateStore.encodingFormat": "unsaferow"}
    for batch in (2, 3):
        tree[f"offsets/{batch}"] = samples.offset_entry(
            batch, samples.kafka_offset(batch), conf=more
        )
    found = marks(held(tree), (), (), ())
    assert [(mark.batch, mark.kind) for mark in found] == [(2, "spark")]


def test_the_heat_map_has_what_each_batch_wrote() -> None:
    tree = samples.sales(4, partitions=2, in_flight=False)
    tree["state/0/1/4.delta"] = b"x" * 500
    [found] = heat_maps(held(tree))
    assert found.partitions == (0, 1)
    assert found.batches == (0, 1, 2, 3)
    assert found.bytes == ((50, 50, 50, 50), (50, 50, 50, 500))
    assert found.skew == pytest.approx(650 / 432.5, abs=0.3)


def test_a_restart_loads_the_snapshot_and_the_changes_after_it() -> None:
    tree = samples.sales(6, partitions=2, in_flight=False)
    tree["state/0/0/4.snapshot"] = b"s" * 900
    found = restart_load(held(tree), {})
    by_partition = {load.partition: load for load in found.partitions}
    assert (by_partition[0].snapshot, by_partition[0].changes) == (4, 2)
    assert by_partition[0].bytes == 900 + 2 * 50
    assert (by_partition[1].snapshot, by_partition[1].changes) == (None, 6)
    assert found.bytes == 900 + 2 * 50 + 6 * 50
    assert found.most_changes == 6


def test_the_anatomy_says_what_a_restart_reads() -> None:
    tree = samples.sales(6, partitions=1, in_flight=False)
    tree |= {"state/0/0/4.snapshot": b"s", "offsets/.5.crc": b"crc", "notes.txt": b"mine"}
    tree |= {"_floodmark/lease.json": b"{}", "state/0/0/.7.delta.abc.tmp": b""}
    found = anatomy(held(tree), {})
    reads = {
        f"{folder.path}/{file.name}".lstrip("/"): file.reads
        for folder in found.folders
        for file in folder.files
    }
    yes = {path for path, answer in reads.items() if answer is Reads.YES}
    assert yes == {
        "metadata",
        "offsets/5",
        "offsets/.5.crc",
        "offsets/4",
        "commits/5",
        "sources/0/0",
        "state/0/_metadata/metadata",
        "state/0/0/_metadata/schema",
        "state/0/0/4.snapshot",
        "state/0/0/5.delta",
        "state/0/0/6.delta",
    }
    assert found.files == len(tree)
    assert found.read_files == len(yes)


@pytest.mark.parametrize("place", sorted(GOLDEN.glob("*/checkpoint")), ids=lambda p: p.parent.name)
def test_every_golden_checkpoint_has_its_views(place: Path) -> None:
    checkpoint = load(open_files(str(place)), Entries.ALL)
    told = anatomy(checkpoint, {})
    assert told.files == len(checkpoint.files)
    for folder in told.folders:
        for file in folder.files:
            assert file.what, (folder.path, file.name)
    assert len(heat_maps(checkpoint)) == len(checkpoint.state_operators)
    assert next_steps(checkpoint, str(place), 0, 0)


def part(at_ms: int, position: int, end: int, earliest: int) -> PartSample:
    return PartSample(at_ms, "0", "orders/0", position, end, earliest)


def test_hours_until_retention_overtakes_the_stream() -> None:
    """Retention moves by 1,000 an hour, the stream by 400: 600 of 3,000 go each hour."""
    found = overtaking([part(0, 4000, 9000, 500), part(HOUR, 4400, 9900, 1500)])
    assert found.ms == pytest.approx((4400 - 1500) / 600 * HOUR, rel=0.01)
    assert "orders/0" in found.words


def test_a_stream_that_keeps_up_is_not_overtaken() -> None:
    assert overtaking([part(0, 100, 200, 0), part(HOUR, 900, 1000, 500)]).ms is None
    assert overtaking([part(0, 100, 200, 0)]).words == "Not watched for long enough to tell."
    assert overtaking([]).ms is None


def test_records_that_are_gone_already_are_said() -> None:
    found = overtaking([part(0, 100, 900, 350)])
    assert found.lost == 250
    assert "250 records of orders/0" in found.words


def test_alerts_begin_once_and_end() -> None:
    card = FleetCard(
        "i", "/p", "p", "/", None, StreamHealth.STALLED, "words", findings=FindingCounts(1)
    )
    now = troubles(card, (1, 2, 4, 9))
    assert set(now) == {"stalled", "behind", "error-finding"}
    assert [event for event, _ in changes({}, now)] == ["stalled", "behind", "error-finding"]
    assert changes(now, now) == []
    assert [event for event, _ in changes(now, {})] == [
        "stalled-over",
        "behind-over",
        "error-finding-over",
    ]


def test_a_lag_that_wavers_is_not_falling_behind() -> None:
    assert falls_behind((10, 20, 30, 40))
    assert not falls_behind((40, 10, 30, 40))
    assert not falls_behind((100, 101, 102, 103))
    assert not falls_behind((1, 2))


def test_flows_of_a_pipeline_have_one_group_and_short_names() -> None:
    path = "/data/lake/_checkpoints/main/sales/orders/orders/3"
    assert group_of(path, "/data") == "lake"
    assert name_of(path, "/data") == "orders/3"
    other = "/data/lake/_checkpoints/main/s/orders/backfill/0"
    assert name_of(other, "/data") == "orders · backfill/0"
    assert superseded([path, other, path[:-1] + "2", "/data/x"]) == {path[:-1] + "2"}
    assert group_of("/data/orders", "/data") is None
    assert name_of("/data/orders", "/data") == "orders"
    assert name_of("/data", "/data") == "data"


def test_a_long_text_is_cut_and_says_so() -> None:
    assert bounded("x" * 10_000).endswith("… (10,000 characters)")


def test_lines_of_progress_that_are_none_are_left_out() -> None:
    good = {
        "batch": 3,
        "duration_ms": 5,
        "durations_ms": {"addBatch": 4, "evil": 9, "walCommit": -1},
    }
    lines = [
        b"",
        b"{",
        b"[1]",
        b'{"batch": "3"}',
        b'{"batch": 1, "duration_ms": true}',
        json.dumps(good).encode(),
        b"[" * 50_000,
        b'{"batch": 4, "duration_ms": 1, "run_id": "' + b"r" * 900 + b'"}',
        b'{"batch": 5, "duration_ms": 99999999999999999999999}',
        b'{"batch": 6, "dura',
    ]
    found = parse_lines(b"\n".join(lines))
    assert [line.batch for line in found] == [3, 4]
    assert found[0].phases_ms == {"addBatch": 4}
    assert len(found[1].run_id) == 64
    assert [line.batch for line in parse_lines(b"\n".join(lines), last=1)] == [4]
