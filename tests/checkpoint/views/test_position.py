from __future__ import annotations

import json
from dataclasses import replace

import pytest

import samples
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.views.position import choose_batch, position, starting_option
from floodmark.connectors.source import StartOption
from floodmark.errors import BatchPurged, MalformedFile, NoAnswer, WrongUse


def _with_lines(*lines: str) -> Checkpoint:
    tree = samples.logs([0], [0]) | {"offsets/0": samples.offset_entry(0, *lines)}
    return samples.checkpoint(tree)


def _delta(**changes: object) -> str:
    return json.dumps({**json.loads(samples.DELTA_OFFSET), **changes}, separators=(",", ":"))


def test_the_last_committed_batch_unless_told() -> None:
    found = samples.checkpoint(samples.logs(range(8), range(7)))
    assert choose_batch(found, None, None) == 6
    assert choose_batch(found, 3, None) == 3
    assert choose_batch(found, 7, None) == 7


def test_by_time() -> None:
    found = samples.checkpoint(samples.logs(range(8), range(7)))
    assert choose_batch(found, None, samples.time_of(3)) == 3
    assert choose_batch(found, None, samples.time_of(4) - 1) == 3
    # Batch 7 was planned by then, and is not committed.
    assert choose_batch(found, None, samples.time_of(99)) == 6
    with pytest.raises(NoAnswer, match="before the stream began"):
        choose_batch(found, None, samples.time_of(0) - 1)
    purged = samples.checkpoint(samples.logs(range(4, 8), range(4, 7)))
    with pytest.raises(BatchPurged, match="the oldest is batch 4"):
        choose_batch(purged, None, samples.time_of(4) - 1)


def test_both_at_once() -> None:
    found = samples.checkpoint(samples.logs([0], [0]))
    with pytest.raises(WrongUse, match="--batch and --at"):
        choose_batch(found, 0, 0)


def test_batches_that_are_not_there() -> None:
    found = samples.checkpoint(samples.logs(range(713, 720), range(713, 719)))
    with pytest.raises(BatchPurged, match="batch 40 is not logged") as caught:
        choose_batch(found, 40, None)
    assert "713 to 719" in caught.value.why
    with pytest.raises(NoAnswer, match="batch 900 is not planned yet"):
        choose_batch(found, 900, None)
    with pytest.raises(WrongUse, match="no batch -1"):
        choose_batch(found, -1, None)
    with pytest.raises(NoAnswer, match="no batch was planned"):
        choose_batch(samples.checkpoint(samples.logs([], [])), None, None)
    with pytest.raises(NoAnswer, match="no batch is committed") as none_yet:
        choose_batch(samples.checkpoint(samples.logs([0, 1], [])), None, None)
    assert "--batch 1" in none_yet.value.do
    with pytest.raises(BatchPurged, match="there is no offset entry"):
        choose_batch(samples.checkpoint(samples.logs([], [3])), None, None)


@pytest.mark.parametrize("broken", [b"", b"\xff", b"v1\n{", b'v1\n{}\n{"a" 1}'])
def test_an_entry_that_cannot_be_read(broken: bytes) -> None:
    tree = samples.logs(range(3), range(3)) | {"offsets/1": broken}
    found = samples.checkpoint(tree)
    with pytest.raises(MalformedFile, match="held/offsets/1 cannot be read"):
        choose_batch(found, 1, None)


def test_kafka() -> None:
    found = samples.checkpoint(samples.logs(range(8), range(7)))
    at = position(found, 6)
    assert (at.batch, at.committed, at.time_ms) == (6, True, samples.time_of(6))
    assert position(found, 7).committed is False
    (source,) = at.sources
    text = '{"orders":{"0":448,"1":554}}'
    assert source.option == StartOption("startingOffsets", text, text)
    assert source.note is not None
    assert "--source-kind 0=eventhubs" in source.note
    sure = replace(found, said_kinds={"0": "kafka"})
    assert position(sure, 6).sources[0].note is None
    assert starting_option(at).form == text


@pytest.mark.parametrize(
    ("line", "said"),
    [('{"eh":{"0":23,"1":-1}}', {}), ('{"eh":{"0":23,"1":0}}', {"0": "eventhubs"})],
)
def test_event_hubs_have_an_option_of_their_own(line: str, said: dict[str, str]) -> None:
    """Sequence numbers are no Kafka offsets: its connector takes eventhubs.startingPositions."""
    at = position(replace(_with_lines(line), said_kinds=said), 0)
    option = starting_option(at)
    assert option.name == "eventhubs.startingPositions"
    places = {json.loads(key)["partitionId"]: one for key, one in json.loads(option.form).items()}
    assert places[0] == {
        "offset": None,
        "seqNo": 23,
        "enqueuedTime": None,
        "isInclusive": True,
    }
    assert places[1]["seqNo"] == json.loads(line)["eh"]["1"]
    assert {json.loads(key)["ehName"] for key in json.loads(option.form)} == {"eh"}


def test_kafkas_text_is_printed_as_it_was_written() -> None:
    text = '{"b": {"1":2,"0":1},"a":{"0":0}}'
    assert starting_option(position(_with_lines(text), 0)).value == text


@pytest.mark.parametrize(
    ("changes", "form", "note"),
    [
        ({}, '{"startingVersion":7,"index":-1}', "nothing of 7."),
        (
            {"index": -100, "sourceVersion": 3},
            '{"startingVersion":7,"index":-1}',
            "The stream has read every version before 7",
        ),
        (
            {"index": 41},
            '{"startingVersion":7,"index":41}',
            "The stream has read files 0 to 41 of version 7",
        ),
        ({"index": -20, "sourceVersion": 3}, '{"startingVersion":7,"index":-20}', None),
    ],
)
def test_delta(changes: dict[str, object], form: str, note: str | None) -> None:
    (source,) = position(_with_lines(_delta(**changes)), 0).sources
    # The value is what Delta's option takes; the form tells of the place inside it, too.
    assert source.option == StartOption("startingVersion", "7", form)
    if note is None:
        assert source.note is None
    else:
        assert source.note is not None
        assert note in source.note


def test_a_first_snapshot_has_no_start_that_skips_nothing() -> None:
    found = position(_with_lines(_delta(index=3, isStartingVersion=True)), 0)
    assert found.sources[0].option is None
    with pytest.raises(NoAnswer, match="no starting offsets to print") as refused:
        starting_option(found)
    assert "only a checkpoint can" in refused.value.why


@pytest.mark.parametrize(
    ("line", "kind", "note"),
    [
        ('{"logOffset":3}', "file", "list of seen files"),
        ('{"offset":10,"timestamp":1000}', "rate", "rate source"),
        ("12", "memory", "memory stream or a socket"),
        ('{"s-0":{"iteratorType":"LATEST"}}', "kinesis", "Kinesis"),
        ('{"pos": 2}', "python", "its own code"),
        ('{"a":"b"}', "unknown", "does not know"),
        (
            '{"version":1,"snapshot_id":1,"position":0,"scan_all_files":false}',
            "iceberg",
            "coarser",
        ),
        ("-", "unknown", "no offset yet"),
    ],
)
def test_sources_without_a_starting_option(line: str, kind: str, note: str) -> None:
    at = position(_with_lines(line), 0)
    (source,) = at.sources
    assert (source.kind, source.option) == (kind, None)
    assert source.note is not None
    assert note in source.note
    with pytest.raises(NoAnswer, match="source 0"):
        starting_option(at)


def test_two_kafka_sources_have_to_be_chosen_from() -> None:
    lines = (samples.kafka_offset(1, "orders"), samples.kafka_offset(2, "clicks"))
    at = position(_with_lines(*lines), 0)
    with pytest.raises(WrongUse, match="2 sources") as caught:
        starting_option(at)
    assert "--source" in caught.value.do
    assert starting_option(at, "1").form == lines[1]
    with pytest.raises(WrongUse, match="no source '7'"):
        starting_option(at, "7")


def test_the_only_source_that_has_an_option_is_taken() -> None:
    at = position(_with_lines('{"logOffset":3}', samples.kafka_offset(1)), 0)
    assert starting_option(at).form == samples.kafka_offset(1)
    with pytest.raises(NoAnswer, match=r"source 0 \(file\)"):
        starting_option(at, "0")


def test_named_sources() -> None:
    entry = b'v2\n{"batchTimestampMs":1}\nclicks:{"web":{"0":99}}\norders:{"logOffset":12}'
    found = samples.checkpoint(samples.logs([0], [0]) | {"offsets/0": entry})
    assert starting_option(position(found, 0), "clicks").form == '{"web":{"0":99}}'
