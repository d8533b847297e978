"""Deltas, snapshots, changelogs and zips: their framing, their chains, their damage."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.errors import FloodmarkError, MalformedFile, OverLimit, UnknownVersion
from floodmark.state.files import hdfs, records
from floodmark.state.files.compression import CODECS, codec_of, compress, decompress
from floodmark.state.files.crc32c import crc_of, crc_rows
from floodmark.state.files.hdfs import (
    StateChecksumFailed,
    StateSource,
    file_records,
    hdfs_source,
    live_records,
    write_snapshot,
)
from floodmark.state.files.javadata import encode_utf
from floodmark.state.files.records import Records, render_records, render_rows, scan
from floodmark.state.files.rocksdb import Base, parse_changelog, read_snapshot, replay
from floodmark.state.keys.keyset import KeySet, hash_rows, last_of_each
from floodmark.state.rows.rowbytes import as_bytes, row_bytes
from samples import write_delta

WORDS = st.binary(min_size=8, max_size=8)
ROWS = st.lists(WORDS, min_size=1, max_size=3).map(b"".join)
CHANGES = st.lists(st.tuples(ROWS, st.one_of(st.none(), ROWS)), max_size=30)
Pairs = list[tuple[bytes, bytes | None]]


def _delta(changes: Pairs, codec: str = "lz4") -> bytes:
    return write_delta([key for key, _ in changes], [value for _, value in changes], codec)


def _rows(found: Iterator[Records]) -> dict[bytes, bytes]:
    rows: dict[bytes, bytes] = {}
    for piece in found:
        for key, value in zip(piece.keys.to_list(), piece.values.to_list(), strict=True):
            assert key not in rows, "a key twice"
            rows[key] = value
    return rows


def _applied(files: list[Pairs]) -> dict[bytes, bytes]:
    state: dict[bytes, bytes] = {}
    for changes in files:
        for key, value in changes:
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value
    return state


@pytest.mark.parametrize("codec", CODECS)
@given(st.binary(max_size=300))
def test_every_codec_comes_back(codec: str, data: bytes) -> None:
    packed = compress(data * 7, codec)
    if data or codec != "lzf":
        assert codec_of(packed) == codec
        assert decompress(packed) == data * 7


@pytest.mark.parametrize("codec", CODECS)
def test_more_than_one_block(codec: str) -> None:
    data = bytes(range(256)) * 1000
    assert decompress(compress(data, codec)) == data


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_in_words(data: bytes) -> None:
    for head in (b"", b"LZ4Block", b"\x28\xb5\x2f\xfd", b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1", b"ZV\1"):
        try:
            decompress(head + data)
        except FloodmarkError:
            continue


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_of_an_lz4_file_never_gives_other_rows(at: int, change: int) -> None:
    changes: Pairs = [(bytes([n]) * 8, bytes([n]) * 16) for n in range(40)]
    data = bytearray(_delta(changes))
    data[at % len(data)] ^= change
    try:
        found = _rows(file_records("1.delta", bytes(data)))
    except FloodmarkError:
        return
    assert found == _applied([changes])


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_cut_short_is_refused_at_every_byte(codec: str) -> None:
    data = _delta([(bytes([n]) * 8, bytes([n]) * 24) for n in range(9)], codec)
    # The last bytes may only close the stream, after the closing -1 was read.
    for size in range(len(data) - 30):
        with pytest.raises(FloodmarkError):
            list(file_records("1.delta", data[:size]))


@given(st.lists(CHANGES, min_size=1, max_size=4))
def test_the_newest_word_about_a_key_counts(files: list[Pairs]) -> None:
    deltas = [_delta(one) for one in reversed(files)]
    sources = [hdfs_source("d", True, lambda data=data: data) for data in deltas]
    assert _rows(live_records(sources)) == _applied(files)


@given(CHANGES, CHANGES)
def test_deltas_after_a_snapshot(before: Pairs, after: Pairs) -> None:
    state = _applied([before])
    snapshot = write_snapshot(list(state), list(state.values()))
    sources = [
        hdfs_source("2.delta", True, lambda: _delta(after)),
        hdfs_source("1.snapshot", False, lambda: snapshot),
    ]
    assert _rows(live_records(sources)) == _applied([before, after])


def test_a_file_larger_than_is_held_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs, "SEGMENT", 1000)
    monkeypatch.setattr(hdfs, "HELD", 3000)
    changes: Pairs = [(struct.pack(">q", n % 700), struct.pack(">q", n)) for n in range(1000)]
    changes += [(struct.pack(">q", 3), None)]
    source = hdfs_source("1.delta", True, lambda: _delta(changes))
    assert _rows(live_records([source])) == _applied([changes])


@settings(max_examples=30)
@given(st.data(), st.integers(0, 2**32))
def test_lanes_find_what_a_plain_walk_finds(data: st.DataObject, seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=4))
    # Values full of what looks like lengths lead the lanes astray as much as can be.
    filler = struct.pack(">i", sizes[0] * 8) * 20
    keys = [random.bytes(8 * int(random.choice(sizes)) % 96) for _ in range(3000)]
    values = [
        None if random.random() < 0.1 else filler[: int(random.integers(0, 80))] for _ in keys
    ]
    content = as_bytes(render_records(keys, values))
    plain = scan(content)
    worth, lane, sample = records._WORTH_LANES, records._LANE, records._SAMPLE
    records._WORTH_LANES, records._LANE, records._SAMPLE = 0, 512, 10
    try:
        lanes = scan(content)
    finally:
        records._WORTH_LANES, records._LANE, records._SAMPLE = worth, lane, sample
    assert plain.ended
    assert lanes.ended
    assert lanes.position == plain.position
    assert lanes.records.keys.to_list() == plain.records.keys.to_list() == keys
    assert lanes.records.values.to_list() == [value or b"" for value in values]
    assert lanes.records.removed.tolist() == [value is None for value in values]


def test_a_negative_size_is_named() -> None:
    with pytest.raises(MalformedFile, match="key of -7 bytes"):
        list(file_records("3.delta", compress(struct.pack(">i", -7))))
    broken = struct.pack(">i", 8) + b"k" * 8 + struct.pack(">i", -2)
    with pytest.raises(MalformedFile, match=r"3\.delta: a value of -2 bytes"):
        list(file_records("3.delta", compress(broken)))


def test_stray_bytes_of_spark_2_are_left_out() -> None:
    data = compress(render_records([b"k" * 8], [b"v" * 16 + b"junk"]))
    assert _rows(file_records("1.delta", data)) == {b"k" * 8: b"v" * 16}


def test_row_checksums() -> None:
    key, value, gone = b"k" * 8, b"v" * 16, b"g" * 8
    good = struct.pack("<I", crc_of(key + value)) + value
    removal = struct.pack("<I", crc_of(gone)) + gone
    data = _delta([(key, good), (removal, None)])
    (found,) = file_records("1.delta", data, row_checksums=True)
    assert found.keys.to_list() == [key, gone]
    assert found.values[0] == value
    assert found.removed.tolist() == [False, True]
    bad = _delta([(key, struct.pack("<I", 1) + value)])
    with pytest.raises(StateChecksumFailed, match=r"1\.delta: 1 of 1"):
        list(file_records("1.delta", bad, row_checksums=True))


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_crc_of_many_rows_is_the_crc_of_each(rows: list[bytes]) -> None:
    assert crc_rows(row_bytes(rows)).tolist() == [crc_of(row) for row in rows]


def test_crc_of_a_long_file() -> None:
    assert crc_of(b"123456789") == 0xE3069283
    long = bytes(range(256)) * 100
    halves = crc_rows(row_bytes([long[9000:]]), crc_rows(row_bytes([long[:9000]])))
    assert crc_of(long) == int(halves[0])


@given(st.lists(st.binary(max_size=20), max_size=50))
def test_hashes_tell_keys_apart(keys: list[bytes]) -> None:
    hashes = hash_rows(row_bytes(keys))
    assert len({tuple(pair) for pair in hashes.T.tolist()}) == len(set(keys))
    kept = [key for key, keep in zip(keys, last_of_each(hashes), strict=True) if keep]
    assert sorted(kept) == sorted(set(keys))
    known = KeySet()
    half = len(keys) // 2
    known.add(hashes[:, :half])
    assert known.contains(hashes).tolist() == [key in keys[:half] for key in keys]


def _base(state: dict[bytes, bytes]) -> Base:
    rows = Records(row_bytes(state), row_bytes(state.values()), np.zeros(len(state), bool))
    return Base(lambda: iter([rows] if state else []), state.get)


def _typed(changes: list[tuple[int, bytes, bytes]], head: bytes = encode_utf("v2")) -> bytes:
    parts = [head]
    for kind, key, other in changes:
        parts += [bytes([kind]), struct.pack(">i", len(key)), key]
        tail = struct.pack(">i", -1) if kind == 0x10 else struct.pack(">i", len(other)) + other
        parts.append(tail)
    return compress(b"".join([*parts, b"\x00"]))


@given(CHANGES, CHANGES)
def test_plain_changelogs(before: Pairs, after: Pairs) -> None:
    logs = [parse_changelog(_delta(after))]
    assert logs[0].version == 1
    assert _rows(replay(_base(_applied([before])), logs, b",")) == _applied([before, after])


TYPED = st.lists(
    st.tuples(
        st.sampled_from([0x01, 0x10, 0x11, 0x20]),
        st.binary(min_size=1, max_size=2),
        st.binary(min_size=1, max_size=2),
    ),
    max_size=25,
)


@given(st.dictionaries(st.binary(min_size=1, max_size=2), st.binary(max_size=3)), TYPED, TYPED)
def test_merges_and_ranges(
    base: dict[bytes, bytes],
    one: list[tuple[int, bytes, bytes]],
    two: list[tuple[int, bytes, bytes]],
) -> None:
    state = dict(base)
    for kind, key, other in one + two:
        if kind == 0x01:
            state[key] = other
        elif kind == 0x10:
            state.pop(key, None)
        elif kind == 0x11:
            state[key] = state[key] + b"," + other if key in state else other
        else:
            state = {k: v for k, v in state.items() if not key <= k < other}
    logs = [parse_changelog(_typed(one)), parse_changelog(_typed(two))]
    assert _rows(replay(_base(base), logs, b",")) == state


def test_lineage_and_versions() -> None:
    lineage = json.dumps([{"version": 2, "checkpointUniqueId": "abc"}])
    head = encode_utf("v4") + encode_utf(lineage)
    assert parse_changelog(_typed([(1, b"k", b"v")], head)).lineage == ((2, "abc"),)
    plain = encode_utf("v3") + encode_utf(lineage) + render_records([b"k"], [b"v"])
    found = parse_changelog(compress(plain))
    assert found.records is not None
    assert found.records.keys.to_list() == [b"k"]
    with pytest.raises(UnknownVersion):
        parse_changelog(compress(encode_utf("v9")))


@given(st.binary(max_size=100))
def test_random_changelogs_are_refused_in_words(data: bytes) -> None:
    for head in (b"", encode_utf("v2"), encode_utf("v3"), encode_utf("v4")):
        try:
            parse_changelog(compress(head + data))
        except FloodmarkError:
            continue


def _zip(entries: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


META = (
    b'v1\n{"sstFiles":[{"localFileName":"1.sst","dfsSstFileName":"1-u.sst","sizeBytes":5}]'
    b',"numKeys":1}'
)


def test_a_snapshots_zip() -> None:
    found = read_snapshot(_zip({"metadata": META, "CURRENT": b"x"}))
    assert found.tables[0].stored == "1-u.sst"
    assert found.files == {"CURRENT": b"x"}


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/b", "..", "a\\b"])
def test_a_zip_cannot_write_outside_its_folder(name: str) -> None:
    with pytest.raises(MalformedFile, match="outside its folder"):
        read_snapshot(_zip({"metadata": META, name: b"x"}))
    with pytest.raises(MalformedFile, match="outside its folder"):
        read_snapshot(
            _zip({"metadata": META.replace(b"1.sst", name.encode().replace(b"\\", b"\\\\"))})
        )


def test_a_zip_that_grows_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODMARK_LIMITS", "zip=10K")
    with pytest.raises(OverLimit, match="content of the snapshot's zip"):
        read_snapshot(_zip({"metadata": META, "big": b"\0" * 20_000}))


def test_a_zip_that_lies_about_its_size() -> None:
    data = _zip({"metadata": META, "big": b"\0" * 5000})
    lie = data.replace(struct.pack("<I", 5000), struct.pack("<I", 50))
    with pytest.raises(MalformedFile):
        read_snapshot(lie)


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_of_a_zip(at: int, change: int) -> None:
    data = bytearray(_zip({"metadata": META, "CURRENT": b"MANIFEST-000001\n"}))
    data[at % len(data)] ^= change
    try:
        read_snapshot(bytes(data))
    except FloodmarkError:
        return


def test_lz4_matches_what_java_checks() -> None:
    # The end mark of lz4-java's stream: no bytes, no checksum.
    assert compress(b"")[-12:] == b"\0" * 12


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=20), max_size=20))
def test_a_snapshot_of_rows_of_any_length(rows: dict[bytes, bytes]) -> None:
    content = render_rows(row_bytes(rows), row_bytes(rows.values()))
    assert content == render_records(list(rows), list(rows.values()))
    assert content == decompress(write_snapshot(list(rows), list(rows.values())))


def test_sources_are_read_lazily() -> None:
    def never() -> Iterator[Records]:
        raise AssertionError

    newest = hdfs_source("2.delta", True, lambda: _delta([(b"k" * 8, b"v" * 8)]))
    rows = live_records([newest, StateSource("1", False, never)])
    assert next(rows).keys.to_list() == [b"k" * 8]
