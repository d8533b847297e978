"""Random and mutated bytes at every parser: only the project's own errors come out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import samples
from floodmark.checkpoint import commits, layout, metadata, offsets
from floodmark.checkpoint.checksums import sidefiles
from floodmark.checkpoint.restart import restart
from floodmark.checkpoint.timeline import timeline
from floodmark.checkpoint.views.inspection import inspection, scan_entry
from floodmark.cli.text import render, render_batches
from floodmark.connectors.delta.offset import parse_delta_offset
from floodmark.connectors.files import file_log as filelog
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.kafka.offset import (
    parse_kafka_initial,
    parse_kafka_offset,
    render_kafka_initial,
)
from floodmark.connectors.rate import parse_rate_initial
from floodmark.connectors.registry import read_source_offset
from floodmark.errors import FloodmarkError
from floodmark.storage import lease_files as holder
from floodmark.wire import dumps

CALM = settings(
    max_examples=100,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Format:
    parse: Callable[[bytes], Any]
    samples: tuple[bytes, ...]
    render: Callable[[Any], bytes] | None = None


def _read_offset(data: bytes) -> Any:
    text = data.decode("utf-8", "surrogateescape")
    found = read_source_offset("0", text)
    assert found.text == text
    dumps(found.offset)
    return found


def _as_kind(meaning: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    def parse(data: bytes) -> Any:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = data.decode("latin-1")
        return meaning(value)

    return parse


OFFSETS = (
    b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":17,"conf":{"a":"b"}}\n{"t":{"0":1}}\n-\n12',
    b'v1\n\n{"1":{"value":7,"runTimeMs":17}}\n',
    b'v2\n{"batchWatermarkMs":0,"batchTimestampMs":17,"sourceMetadataInfo":{}}\na:{"b":1}\nc:-',
    b'v1\r\n{"batchTimestampMs":17}\r\n0\r\n',
)
COMMITS = (
    b"v1\n{}",
    b'v1\n{"nextBatchWatermarkMs":5000}',
    b'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a","b"],["c","d"]]}}',
    b'v3\n{"nextBatchWatermarkMs":0,"sinkMetadataMap":{"s":{"sinkName":"s","isActive":true}}}',
)
OFFSET_TEXTS = (
    b'{"orders":{"0":23,"1":41}}',
    samples.DELTA_OFFSET.encode(),
    b'{"logOffset":12}',
    b'{"0":{"value":7,"runTimeMs":1}}',
    b'{"metadata":{"batchId":"7"},"shardId-0":{"iteratorType":"LATEST"}}',
    b'[{"shard":{"shardId":"s"},"lastSeqNum":"4960"}]',
    b'{"pos": NaN, "tag": "x y"}',
    b"-1",
)
_LEASE = (
    b'{"floodmark":"lease","version":1,"run":"r","pipeline":"p","host":"h","processes":'
    b'[{"pid":7,"started":5}],"beat":1,"beat_ms":1}'
)
FORMATS = {
    "offsets": Format(offsets.parse_offsets, OFFSETS, offsets.render_offsets),
    "commits": Format(commits.parse_commit, COMMITS, commits.render_commit),
    "metadata": Format(
        metadata.parse_metadata,
        (b'{"id":"5a0c-824f"}', b'{\n "id" : "x"\n}'),
        metadata.render_metadata,
    ),
    "operator metadata": Format(
        metadata.parse_operator_metadata,
        (
            samples.operator_metadata(),
            b'v2\n{"operatorInfo":{"operatorId":1,"operatorName":"x"},"stateStoreInfo":[{'
            b'"stateSchemaFilePaths":["a"]}],"operatorPropertiesJson":"{}"}',
        ),
    ),
    "source log": Format(
        filelog.parse_source_log,
        (
            b'v1\n{"path":"/in/a%20b","timestamp":1,"batchId":0}\n{"path":"b","timestamp":2,"batchId":1}',
        ),
    ),
    "sink log": Format(
        filelog.parse_sink_log,
        (b'v1\n{"path":"/o","size":4,"isDir":false,"modificationTime":1,"action":"add"}\n',),
    ),
    "kafka initial": Format(
        parse_kafka_initial,
        (b'\0v1\n{"t":{"0":1}}', b'\x0d{"t":{"0":1}}', b'0v1\n{"t":{"0":1}}'),
        render_kafka_initial,
    ),
    "rate initial": Format(parse_rate_initial, (b"v1\n1700000000000",)),
    "an offset": Format(_read_offset, OFFSET_TEXTS),
    "a bare number's kind": Format(
        lambda data: read_source_offset("0", "12", data),
        (b"v1\n1700000000000", b'\0v1\n{"t":{"0":1}}', b'v1\n{"path":"/a"}'),
    ),
    "offset metadata": Format(
        lambda data: offsets.parse_offset_metadata(data.decode("latin-1")),
        (b'{"batchWatermarkMs":0,"batchTimestampMs":17,"conf":{"a":"b"}}', b"{}"),
    ),
    "operator metadata of other partitions": Format(
        lambda data: metadata.with_partitions(data, 3), (samples.operator_metadata(),)
    ),
    "a side file": Format(
        lambda data: (
            sidefiles.agrees(data, b"content"),
            sidefiles.whole_sum(data, 7),
            sidefiles.without_flips(data, b"content"),
            sidefiles.is_itself_damaged(data, b"content"),
        ),
        (sidefiles.side_file_of(b"content"), sidefiles.side_file_of(bytes(2000))),
    ),
    "a lease": Format(holder.parse, (_LEASE,)),
    "kafka offset": Format(_as_kind(parse_kafka_offset), OFFSET_TEXTS),
    "delta offset": Format(_as_kind(parse_delta_offset), OFFSET_TEXTS),
    "file offset": Format(_as_kind(parse_log_offset), OFFSET_TEXTS),
}


@st.composite
def mutated(draw: st.DrawFn, valid: tuple[bytes, ...]) -> bytes:
    """A valid sample after a few accidents: cut, flipped, spliced, stretched."""
    data = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, len(data)))
        match draw(st.sampled_from(["cut", "flip", "splice", "insert", "swap"])):
            case "cut":
                data = data[:at]
            case "flip" if at < len(data):
                data = (
                    data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
                )
            case "splice":
                data = data[:at] + data[end:]
            case "insert":
                data = data[:at] + draw(st.sampled_from(ACCIDENTS)) + data[at:]
            case "swap":
                data = data[:at] + draw(st.sampled_from(valid))[at:]
    return data


ACCIDENTS = [
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff\xfe",
    b"\xf0\x9f",
    b"{",
    b"[" * 3000,
    b"9" * 5000,
    b"-",
    b":",
    b'"\\ud800"',
    b"null",
    b"NaN",
    b"1e999",
    b'{"a":{"0":1}}',
    "٣".encode(),
    b" ",
    b"v1\n",
]


def _try(form: Format, data: bytes) -> None:
    refusal, value = _attempt(form, data)
    if refusal is not None:
        assert refusal.what
        assert len(refusal.what) < 400, "an error is a sentence, not the file"
    elif form.render is not None:
        assert form.render(value) == data


def _attempt(form: Format, data: bytes) -> tuple[FloodmarkError | None, Any]:
    try:
        return None, form.parse(data)
    except FloodmarkError as error:
        return error, None


@pytest.mark.parametrize("name", FORMATS)
def test_random_bytes(name: str) -> None:
    @CALM
    @given(
        data=st.one_of(st.binary(max_size=200), st.binary(max_size=100).map(lambda b: b"v1\n" + b))
    )
    @example(data=b"")
    @example(data=b"v1")
    @example(data=b"v" + b"1" * 5000)
    def attempt(data: bytes) -> None:
        _try(FORMATS[name], data)

    attempt()


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_samples(name: str) -> None:
    form = FORMATS[name]

    @CALM
    @given(data=mutated(form.samples))
    def attempt(data: bytes) -> None:
        _try(form, data)

    attempt()


@pytest.mark.parametrize("name", FORMATS)
def test_the_samples_themselves_are_sound(name: str) -> None:
    form = FORMATS[name]
    read = []
    for data in form.samples:
        try:
            read.append(form.parse(data))
        except FloodmarkError:
            continue
    assert read, "no sample of the format was read at all"


@CALM
@given(name=st.text(max_size=30))
def test_any_file_name(name: str) -> None:
    batch = layout.batch_id(name)
    assert batch is None or str(batch) == name
    entry = filelog.log_id(name)
    assert entry is None or entry >= 0
    layout.is_dstreams_checkpoint(name)
    layout.is_temporary(name)
    found = layout.parse_state_file(f"state/0/0/{name}")
    assert found is None or found.version >= 0


@settings(CALM, max_examples=150)
@example(damaged={"offsets/2": b'v1\n{"batchWatermarkMs":0}\n0'})
@given(
    damaged=st.dictionaries(
        st.sampled_from(
            ["metadata", "offsets/2", "offsets/1", "commits/1", "state/0/_metadata/metadata"]
        ),
        st.one_of(st.binary(max_size=60), mutated(OFFSETS), mutated(COMMITS)),
        min_size=1,
    )
)
def test_a_damaged_checkpoint_is_still_shown(damaged: dict[str, bytes]) -> None:
    """One bad file never hides the rest, whatever is in it."""
    tree = samples.sales(3) | damaged
    found = samples.checkpoint(tree)
    assert (found.latest_batch, found.committed_batch, found.in_flight_batch) == (2, 1, 2)
    assert {item.path for item in found.unreadable} <= set(damaged)
    assert [batch.batch for batch in timeline(found)] == [0, 1, 2]
    assert restart(found).words
    assert json.loads(dumps(inspection(found)))["files"] == len(tree)
    assert scan_entry(found).latest_batch == 2
    assert render.checkpoint(found)
    assert render_batches.batches(timeline(found))
