"""Arrow to stored rows and back, in every encoding; and where keys belong."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.errors import WrongUse
from floodmark.state.files.compression import CODECS, compressed, decompress
from floodmark.state.files.records import Records
from floodmark.state.files.rocksdb import (
    DELETE,
    DELETE_RANGE,
    MERGE,
    PUT,
    ChangelogRecord,
    parse_changelog,
)
from floodmark.state.files.rocksdb_write import render_changelog
from floodmark.state.keys.murmur import hashes_of
from floodmark.state.keys.partitioning import partition_of
from floodmark.state.rows.encoding import encode
from floodmark.state.rows.layout import Layout
from floodmark.state.rows.rowbytes import joined, row_bytes
from floodmark.state.rows.types import (
    Array,
    Atom,
    DataType,
    Decimal,
    Field,
    Map,
    Struct,
    arrow_type,
    atom,
)
from floodmark.state.shapes.schema import KeyEncoding
from floodmark.state.shapes.tally import Tally, tally
from state.drawn_rows import ATOM_VALUES, INTS

NUMBERS = (*INTS, "float", "double")


def _struct(*kinds: DataType) -> Struct:
    return Struct(tuple(Field(f"c{at}", kind) for at, kind in enumerate(kinds)))


def _value(kind: DataType) -> st.SearchStrategy[Any]:
    if isinstance(kind, Struct):
        return st.fixed_dictionaries({f.name: st.none() | _value(f.type) for f in kind.fields})
    if isinstance(kind, Array):
        return st.lists(_value(kind.element), max_size=4)
    if isinstance(kind, Map):
        return st.lists(st.tuples(st.text(max_size=3), _value(kind.value)), max_size=3)
    if isinstance(kind, Decimal):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(lambda n: decimal.Decimal(n).scaleb(-kind.scale, _DEEP))
    assert isinstance(kind, Atom)
    if kind.name in INTS:
        half = 2 ** (INTS[kind.name] - 1)
        return st.integers(-half, half - 1)
    return ATOM_VALUES[kind.name]


_DEEP = decimal.Context(prec=60)
ATOMS: list[DataType] = [
    *(atom(name) for name in (*NUMBERS, "boolean", "date", "timestamp", "timestamp_ntz")),
    *(atom("string"), atom("binary"), Decimal(9, 2), Decimal(38, 10)),
]
NESTED: list[DataType] = [
    _struct(atom("string"), atom("long")),
    Array(atom("string")),
    Map(atom("string"), atom("integer")),
]


@st.composite
def rows(draw: Any, *kinds: DataType) -> pa.Array:
    schema = _struct(*kinds)
    found = draw(st.lists(_value(schema), max_size=5))
    return pa.array(found, arrow_type(schema))


def _round_trip(layout: Layout, keys: pa.Array, values: pa.Array) -> Records:
    records = encode(layout, keys, values)
    back_keys, back_values = layout.decode(records)
    assert back_keys.equals(keys)
    assert back_values.equals(values)
    return records


@pytest.mark.parametrize("avro", [False, True])
@pytest.mark.parametrize("family", [None, 7])
@settings(max_examples=15)
@given(data=st.data())
def test_plain_keys(avro: bool, family: int | None, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from([*ATOMS, *NESTED]), min_size=1, max_size=3))
    schema = _struct(*kinds)
    keys = data.draw(rows(*kinds))
    layout = Layout(
        schema, schema, True, family=family, avro=avro, written={0: schema} if avro else {}
    )
    _round_trip(layout, keys, keys)
    if not avro:
        _round_trip(Layout(schema, schema), keys, keys)
        checked = Layout(schema, schema, True, family=family, row_checksums=True)
        _round_trip(checked, keys, keys)


@pytest.mark.parametrize("avro", [False, True])
@settings(max_examples=15)
@given(data=st.data())
def test_prefix_keys(avro: bool, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(ATOMS), min_size=2, max_size=4))
    schema, value = _struct(*kinds), _struct(atom("long"))
    keys = data.draw(rows(*kinds))
    values = pa.array([{"c0": at} for at in range(len(keys))], arrow_type(value))
    spec = KeyEncoding("PrefixKeyScanStateEncoderSpec", data.draw(st.integers(1, len(kinds) - 1)))
    _round_trip(Layout(schema, value, True, spec, 3, avro=avro, written={0: value}), keys, values)


@pytest.mark.parametrize("avro", [False, True])
@settings(max_examples=20)
@given(data=st.data())
def test_range_keys_sort_by_their_bytes(avro: bool, data: st.DataObject) -> None:
    first = data.draw(st.sampled_from(NUMBERS))
    kinds = [atom("string"), atom(first)]
    schema, value = _struct(*kinds), _struct(atom("long"))
    keys = data.draw(rows(*kinds))
    values = pa.array([{"c0": at} for at in range(len(keys))], arrow_type(value))
    spec = KeyEncoding("RangeKeyScanStateEncoderSpec", 0, (1,))
    layout = Layout(schema, value, True, spec, avro=avro, written={0: value})
    records = _round_trip(layout, keys, values)
    numbers = [row["c1"] for row in keys.to_pylist()]
    order = sorted(range(len(keys)), key=records.keys.to_list().__getitem__)
    by_bytes = [numbers[at] for at in order]
    known = [number for number in by_bytes if number is not None]
    assert known == sorted(known)
    assert by_bytes[: len(known)] == known  # nulls come last


@pytest.mark.parametrize("kind", ["Prefix", "Postfix"])
@settings(max_examples=15)
@given(times=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6, unique=True))
def test_keys_with_a_time(kind: str, times: list[int]) -> None:
    schema, value = _struct(atom("string"), atom("long")), _struct(atom("long"))
    keys = pa.array([{"c0": "k", "c1": time} for time in times], arrow_type(schema))
    values = pa.array([{"c0": at} for at in range(len(times))], arrow_type(value))
    spec = KeyEncoding(f"TimestampAs{kind}KeyStateEncoderSpec")
    records = _round_trip(Layout(schema, value, True, spec), keys, values)
    stored = records.keys.to_list()
    assert [time for _, time in sorted(zip(stored, times, strict=True))] == sorted(times)


@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("delimiter", [b",", b""])
def test_elements_of_a_list_stand_in_one_value(checksums: bool, delimiter: bytes) -> None:
    schema, value = _struct(atom("string")), _struct(atom("long"))
    keys = pa.array([{"c0": name} for name in ("a", "a", "b", "a")], arrow_type(schema))
    values = pa.array([{"c0": at} for at in range(4)], arrow_type(value))
    layout = Layout(
        schema,
        value,
        True,
        has_elements=True,
        delimiter=delimiter,
        row_checksums=checksums,
        family=2,
    )
    records = encode(layout, keys, values)
    assert len(records) == 2
    back_keys, back_values = layout.decode(records)
    assert [row["c0"] for row in back_keys.to_pylist()] == ["a", "a", "a", "b"]
    assert [row["c0"] for row in back_values.to_pylist()] == [0, 1, 3, 2]


def test_what_has_no_order_is_refused() -> None:
    schema, value = _struct(atom("string")), _struct(atom("long"))
    spec = KeyEncoding("RangeKeyScanStateEncoderSpec", 0, (0,))
    keys = pa.array([{"c0": "a"}], arrow_type(schema))
    values = pa.array([{"c0": 1}], arrow_type(value))
    with pytest.raises(WrongUse, match="c0"):
        encode(Layout(schema, value, True, spec), keys, values)


@settings(max_examples=20)
@given(data=st.data(), partitions=st.integers(1, 50))
def test_many_keys_hash_as_one_does(data: st.DataObject, partitions: int) -> None:
    kinds = data.draw(st.lists(st.sampled_from([*ATOMS, *NESTED]), min_size=1, max_size=3))
    schema = _struct(*kinds)
    keys = data.draw(rows(*kinds))
    found = hashes_of(keys.flatten(), kinds).view("i4").astype("i8") % partitions
    assert found.tolist() == [partition_of(key, schema, partitions) for key in keys]


@pytest.mark.parametrize("codec", CODECS)
@given(content=st.lists(st.binary(max_size=200), max_size=5))
def test_a_stream_in_pieces(codec: str, content: list[bytes]) -> None:
    content = [piece * 900 for piece in content]
    whole = b"".join(content) or b"x"
    written = b"".join(compressed([*content] if b"".join(content) else [b"x"], codec))
    assert decompress(written) == whole


CHANGES = [
    ChangelogRecord(PUT, b"\1\0key", b"value"),
    ChangelogRecord(MERGE, b"\1\0key", b"more"),
    ChangelogRecord(DELETE, b"\2\0gone", b""),
    ChangelogRecord(DELETE_RANGE, b"\3\0a", b"\3\0b"),
]
LINEAGE = ((1, "aaaa"), (2, "bbbb"))


@pytest.mark.parametrize("version", [2, 4])
def test_a_changelog_of_column_families(version: int) -> None:
    lineage = LINEAGE if version == 4 else ()
    found = parse_changelog(render_changelog(version, CHANGES, "zstd", lineage))
    assert (found.version, found.lineage, found.changes) == (version, lineage, tuple(CHANGES))


@pytest.mark.parametrize("version", [1, 3])
def test_a_plain_changelog(version: int) -> None:
    import numpy as np

    lineage = LINEAGE if version == 3 else ()
    records = Records(row_bytes([b"a", b"bb"]), row_bytes([b"one", b""]), np.array([False, True]))
    found = parse_changelog(render_changelog(version, records, "lz4", lineage))
    assert found.records is not None
    assert (found.version, found.lineage) == (version, lineage)
    assert found.records.keys.to_list() == [b"a", b"bb"]
    assert found.records.removed.tolist() == [False, True]
    with pytest.raises(WrongUse):
        render_changelog(version, CHANGES)
    with pytest.raises(WrongUse):
        render_changelog(version + 1, records)


def _records(pairs: list[tuple[bytes, bytes]]) -> Records:
    import numpy as np

    return Records(
        row_bytes(key for key, _ in pairs),
        row_bytes(value for _, value in pairs),
        np.zeros(len(pairs), bool),
    )


PAIRS = st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=20)), max_size=8)


@given(pairs=PAIRS, order=st.randoms(), cut=st.integers(0, 8))
def test_a_tally_does_not_see_the_order(pairs: Any, order: Any, cut: int) -> None:
    shuffled = list(pairs)
    order.shuffle(shuffled)
    parts = tally(_records(shuffled[:cut])) + tally(_records(shuffled[cut:]))
    assert parts == tally(_records(pairs)) + Tally()


@given(pairs=PAIRS.filter(lambda pairs: len(set(pairs)) > 1))
def test_a_tally_sees_a_swapped_value(pairs: Any) -> None:
    (one, two) = list(dict.fromkeys(pairs))[:2]
    if one[0] == two[0] or one[1] == two[1]:
        return
    before = tally(_records([one, two]))
    assert tally(_records([(one[0], two[1]), (two[0], one[1])])) != before
    assert tally(_records([one])) != before
    assert len(before.checksum) == 32


def test_parts_of_rows_are_joined() -> None:
    rows_ = row_bytes([b"a", b"", b"ccc"]).take([2, 0, 1])
    assert joined([b"<", rows_, b">"]).to_list() == [b"<ccc>", b"<a>", b"<>"]
