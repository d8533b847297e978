"""Whole or not, told without making rows: the same answer as by decoding everything."""

from __future__ import annotations

import random

import pytest

from floodmark.errors import FloodmarkError, MalformedFile
from floodmark.state.files.compression import compress, decompress
from floodmark.state.files.hdfs import file_records, write_snapshot
from floodmark.state.files.rocksdb import parse_changelog
from floodmark.state.files.soundness import content_of, first_keys
from rules.examples import golden
from samples import write_delta

KEYS = [bytes([n % 256, n // 256]) * 4 for n in range(9000)]
VALUES: list[bytes | None] = [None if n % 7 == 0 else bytes([n % 251]) * 8 for n in range(9000)]


def decodes(data: bytes, kind: str) -> bool:
    try:
        if kind == "changelog":
            parse_changelog(data)
        else:
            list(file_records("", data, kind == "delta"))
    except FloodmarkError:
        return False
    return True


def is_sound(data: bytes, kind: str) -> bool:
    try:
        content_of(data, kind)
    except FloodmarkError:
        return False
    return True


@pytest.mark.parametrize("codec", ["lz4", "zstd", "snappy", "lzf"])
def test_cut_or_flipped_it_is_not_whole(codec: str) -> None:
    data = write_delta(KEYS, VALUES, codec)
    chance = random.Random(codec)
    assert is_sound(data, "delta")
    for _ in range(40):
        assert not is_sound(data[: chance.randrange(len(data))], "delta")
        flipped = bytearray(data)
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        # Where a codec has no checksum, only what decodes wrongly can be seen.
        assert is_sound(bytes(flipped), "delta") == decodes(bytes(flipped), "delta")


@pytest.mark.parametrize("vouched", [False, True])
def test_a_stream_that_is_closed_too_early_is_found(vouched: bool) -> None:
    whole = decompress(write_snapshot(KEYS[:5], KEYS[:5]))
    for cut in range(1, 30):
        with pytest.raises(MalformedFile):
            content_of(compress(whole[:-cut]), "snapshot", vouched)


@pytest.mark.parametrize("codec", ["lz4", "zstd", "snappy", "lzf"])
def test_vouched_for_or_not_the_ends_are_the_same(codec: str) -> None:
    data = write_delta(KEYS, VALUES, codec)
    assert content_of(data, "delta", vouched=True) == content_of(data, "delta")
    assert content_of(data, "delta").tail == decompress(data)[-8:]


@pytest.mark.parametrize(
    "name", ["4.1/sales-changelog", "4.1/sales-format-2", "4.0/transform-with-state"]
)
def test_changelogs_as_spark_wrote_them(name: str) -> None:
    tree = {path: data for path, data in golden(name).items() if path.endswith(".changelog")}
    for path, data in tree.items():
        head = content_of(data, "changelog").head
        log = parse_changelog(data)
        known = log.records.keys.to_list() if log.records is not None else []
        known += [change.key for change in log.changes]
        assert first_keys(head, "changelog", 3) == known[:3], path
        assert not is_sound(data[:-1], "changelog")
    assert tree or name == "4.0/transform-with-state"


def test_some_keys() -> None:
    head = content_of(write_delta(KEYS, VALUES), "delta").head
    assert first_keys(head, "delta", 20) == KEYS[:20]
    assert first_keys(content_of(write_delta([], []), "delta").head, "delta", 20) == []
