"""Random and mutated bytes at every parser of a state: only the project's own errors come out.

The samples are golden state files; what is compressed is mutated inside as well, so that the
checksums of its blocks do not keep the parsers behind them from being tried.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from floodmark.errors import FloodmarkError
from floodmark.state.files import compression, hdfs, javadata, rocksdb, soundness
from floodmark.state.files.records import scan
from floodmark.state.files.sstable import table_walk
from floodmark.state.rows import avro, ddl, one_row
from floodmark.state.rows.rowbytes import as_bytes, row_bytes
from floodmark.state.rows.types import Struct, arrow_type, parse_struct
from floodmark.state.rows.unsaferow import decode_rows
from floodmark.state.rows.unsaferow_write import encode_rows
from floodmark.state.shapes import schema

GOLDEN = Path(__file__).parents[1] / "golden"
CALM = settings(
    max_examples=150,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
ROW = (
    '{"type":"struct","fields":['
    '{"name":"k","type":"string","nullable":true,"metadata":{}},'
    '{"name":"n","type":"long","nullable":true,"metadata":{}},'
    '{"name":"d","type":"decimal(30,2)","nullable":true,"metadata":{}},'
    '{"name":"a","type":{"type":"array","elementType":"integer","containsNull":true},'
    '"nullable":true,"metadata":{}},'
    '{"name":"m","type":{"type":"map","keyType":"string","valueType":"double",'
    '"valueContainsNull":true},"nullable":true,"metadata":{}},'
    '{"name":"t","type":"timestamp","nullable":true,"metadata":{}}]}'
)


def _golden(pattern: str, most: int = 12) -> tuple[bytes, ...]:
    found = sorted(GOLDEN.glob(pattern))
    step = max(1, len(found) // most)
    assert found, pattern
    return tuple(path.read_bytes() for path in found[::step][:most])


def _through(data: bytes) -> None:
    for _ in compression.pieces(data):
        pass


def _walked(data: bytes) -> None:
    for vouched in (False, True):
        walk = compression.Lz4Walk(vouched)
        walk.take(memoryview(data))
        walk.tail(8)
    compression.lz4_ends(data, 8)


def _records(data: bytes) -> None:
    for row_checksums in (False, True):
        for _ in hdfs.live_records(
            [hdfs.hdfs_source("1.delta", True, lambda: data, row_checksums)]
        ):
            pass


def _in(codec: str, parse: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """The bytes are the content of a sound stream."""
    return lambda content: parse(compression.compress(content, codec))


def _contents(pattern: str) -> tuple[bytes, ...]:
    return tuple(compression.decompress(data) for data in _golden(pattern))


def _zip_metadata(data: bytes) -> rocksdb.RocksSnapshot:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("metadata", data)
    return rocksdb.read_snapshot(out.getvalue())


def _metadata(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read("metadata")


def _table(data: bytes) -> None:
    walk = table_walk(len(data), lambda at, count: data[at : at + count])
    if walk is not None and walk.longest < 1 << 20:
        walk.take(memoryview(data))
        assert walk.fits in (True, False)


def _schema_of(data: bytes) -> None:
    found = schema.parse_schema(data)
    for family in found.families:
        assert isinstance(family.key, Struct)
        assert isinstance(family.value, Struct)
        family.encoding  # noqa: B018 - it is parsed when it is asked for


STRUCT = parse_struct(ROW)


def _written() -> bytes:
    import pyarrow as pa

    row = {"k": "abc", "n": 5, "d": None, "a": [1, None, 3], "m": [("x", 0.5)], "t": None}
    return encode_rows(pa.array([row], arrow_type(STRUCT)), STRUCT)[0]


def _rows(data: bytes) -> None:
    one_row.decode_row(data, STRUCT)
    decode_rows(row_bytes([data]), STRUCT)


@dataclass(frozen=True)
class Format:
    parse: Callable[[bytes], Any]
    samples: tuple[bytes, ...]


FORMATS = {
    "a compressed stream": Format(_through, _golden("*/sales-hdfs/checkpoint/state/0/*/*.delta")),
    **{
        f"{codec} stream": Format(
            _through, tuple(compression.compress(bytes(range(256)) * 40, codec) for _ in range(1))
        )
        for codec in compression.CODECS
    },
    "an lz4 walk": Format(_walked, _golden("*/sales-hdfs/checkpoint/state/0/*/*.delta")),
    "records": Format(
        lambda data: scan(as_bytes(data)), _contents("*/sales-hdfs/checkpoint/state/0/*/*.delta")
    ),
    "a delta": Format(
        _in("lz4", _records), _contents("*/sales-row-checksum/checkpoint/state/0/*/*.delta")
    ),
    "a changelog": Format(
        _in("zstd", rocksdb.parse_changelog), _contents("*/*/checkpoint/state/0/*/*.changelog")
    ),
    "a changelog with checksums": Format(
        _in("lz4", lambda data: rocksdb.parse_changelog(data, True)),
        _contents("*/*/checkpoint/state/0/*/*.changelog"),
    ),
    "a changelog's head": Format(
        rocksdb.changelog_head, _contents("*/*/checkpoint/state/0/*/*.changelog")
    ),
    "a state file's ends": Format(
        lambda data: [soundness.content_of(data, kind) for kind in ("delta", "changelog")],
        _golden("*/sales-hdfs/checkpoint/state/0/*/*.delta"),
    ),
    "first keys": Format(
        lambda data: soundness.first_keys(data, "delta", 5),
        _contents("*/sales-hdfs/checkpoint/state/0/*/*.delta"),
    ),
    "a snapshot's zip": Format(
        rocksdb.read_snapshot, _golden("*/sales-rocksdb/checkpoint/state/0/*/*.zip")
    ),
    "a snapshot's metadata": Format(
        _zip_metadata,
        tuple(map(_metadata, _golden("*/*/checkpoint/state/0/*/*.zip"))),
    ),
    "a lineage": Format(
        lambda data: rocksdb.parse_lineage(data.decode("latin-1")),
        (b'[{"version":3,"checkpointUniqueId":"0b-1"}]', b"[]"),
    ),
    "a RocksDB table": Format(_table, _golden("*/sales-rocksdb/checkpoint/state/0/*/SSTs/*.sst")),
    "a state schema": Format(
        _schema_of,
        (
            *_golden("*/*/checkpoint/state/0/0/_metadata/schema"),
            *_golden("*/*/checkpoint/state/0/_stateSchema/*/*"),
        ),
    ),
    "a struct": Format(lambda data: parse_struct(data.decode("latin-1")), (ROW.encode(),)),
    "DDL": Format(
        lambda data: ddl.parse_ddl(data.decode("latin-1")),
        (b"a INT, b STRUCT<c: ARRAY<STRING>>, d DECIMAL(10,2)", b"`x y` MAP<INT, DATE> NOT NULL"),
    ),
    "Java's text": Format(javadata.decode_utf, (b"abc", "é\0".encode(), b"\xc0\x80")),
    "an UnsafeRow": Format(
        _rows, (_written(), bytes(8) + struct.pack("<q", 3) * 6, bytes(56) + b"text" * 4)
    ),
    "an Avro row": Format(
        lambda data: avro.decode_avro(data, STRUCT),
        (b"\x02\x06abc\x02\x08\x00\x00\x00\x00", bytes(9)),
    ),
}
ACCIDENTS = [
    *(b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(16), b"\x80" * 12),
    *(
        b"[" * 3000,
        b'{"a":' * 2000,
        b"9" * 5000,
        b"\n",
        b'"\\ud800"',
        b"null",
        b"1e999",
        b"<" * 2000,
    ),
    *(b"ARRAY<" * 2000, b"v9", b"\0\x02v2", b"\xed\xa0\x80"),
]


@st.composite
def mutated(draw: st.DrawFn, samples: tuple[bytes, ...]) -> bytes:
    """A sample after a few accidents."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 40)))
        match draw(st.sampled_from(["cut", "flip", "splice", "insert", "set", "swap"])):
            case "cut":
                data = data[:at]
            case "flip" if at < len(data):
                bit = 1 << draw(st.integers(0, 7))
                data = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
            case "splice":
                data = data[:at] + data[end:]
            case "insert":
                data = data[:at] + draw(st.sampled_from(ACCIDENTS)) + data[at:]
            case "set":
                data = data[:at] + draw(st.binary(max_size=8)) + data[end:]
            case "swap":
                data = data[:at] + draw(st.sampled_from(samples))[at:]
    return data


def _try(form: Format, data: bytes) -> None:
    refusal = _refusal(form, data)
    assert refusal is None or 0 < len(refusal.what) < 500, "an error is a sentence, not the file"


def _refusal(form: Format, data: bytes) -> FloodmarkError | None:
    try:
        form.parse(data)
    except FloodmarkError as error:
        return error
    return None


@pytest.mark.parametrize("name", FORMATS)
def test_random_state_bytes(name: str) -> None:
    @CALM
    @given(data=st.binary(max_size=300))
    @example(data=b"")
    def attempt(data: bytes) -> None:
        _try(FORMATS[name], data)

    attempt()


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_state_bytes(name: str) -> None:
    @CALM
    @given(data=mutated(FORMATS[name].samples))
    def attempt(data: bytes) -> None:
        _try(FORMATS[name], data)

    attempt()


@pytest.mark.parametrize("name", FORMATS)
def test_some_sample_is_read(name: str) -> None:
    form = FORMATS[name]
    read = [data for data in form.samples if _refusal(form, data) is None]
    assert read, "no sample of the format was read at all"
