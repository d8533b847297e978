from __future__ import annotations

import pytest

from floodmark.connectors.files.file_log import (
    compact_interval,
    files_between,
    log_id,
    merge_source_logs,
    missing_ids,
    names_to_read,
    parse_sink_log,
    parse_source_log,
    render_log,
    with_root,
)
from floodmark.errors import MalformedFile, UnknownVersion

SOURCE = (
    b'v1\n{"path":"file:///in/a%20b.json","timestamp":1480730949000,"batchId":0}\n'
    b'{"path":"/in/\xc3\xa4","timestamp":1480730950000,"batchId":1}'
)
SINK = (
    b'v1\n{"path":"file:///out/part-0.parquet","size":404,"isDir":false,'
    b'"modificationTime":1700000000000,"blockReplication":1,"blockSize":33554432,"action":"add"}\n'
    b'{"path":"file:///out/old","size":0,"isDir":true,"modificationTime":1,'
    b'"blockReplication":1,"blockSize":1,"action":"delete"}'
)


@pytest.mark.parametrize("data", [SOURCE, SOURCE + b"\n", b"v1", b"v1\n"])
def test_source_log_byte_for_byte(data: bytes) -> None:
    assert render_log(parse_source_log(data), ends_with_newline=data.endswith(b"\n")) == data


@pytest.mark.parametrize("data", [SINK, SINK + b"\n", b"v1"])
def test_sink_log_byte_for_byte(data: bytes) -> None:
    assert render_log(parse_sink_log(data), ends_with_newline=data.endswith(b"\n")) == data


def test_source_files() -> None:
    first, second = parse_source_log(SOURCE)
    assert (first.path, first.timestamp, first.batch_id) == (
        "file:///in/a%20b.json",
        1_480_730_949_000,
        0,
    )
    assert first.readable_path == "file:///in/a b.json"
    assert (second.readable_path, second.batch_id) == ("/in/ä", 1)


def test_sink_files() -> None:
    first, second = parse_sink_log(SINK)
    assert (first.path, first.size, first.is_dir, first.action) == (
        "file:///out/part-0.parquet",
        404,
        False,
        "add",
    )
    assert (second.is_dir, second.action) == (True, "delete")


@pytest.mark.parametrize("parser", [parse_source_log, parse_sink_log])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"v1\n{}", "no path"),
        (b'v1\n{"path":7}', "no path"),
        (b'v1\n{"path":"/a"}', "not a whole number"),
        (b'v1\n{"path":"/a","timestamp":', "an entry is not JSON"),
        (b'v1\n\n{"path":"/a"}', "an entry is not JSON"),
        (b"{}", "not a version"),
        (b"v1\n\x80", "not UTF-8"),
    ],
)
def test_damage_has_its_own_words(parser: object, data: bytes, words: str) -> None:
    assert callable(parser)
    with pytest.raises(MalformedFile, match=words):
        parser(data)


def test_a_newer_version() -> None:
    with pytest.raises(UnknownVersion, match="'v2'; this floodmark reads up to 'v1'"):
        parse_source_log(b"v2\n")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("12", 12),
        ("9.compact", 9),
        ("compact", None),
        (".compact", None),
        (".9.crc", None),
        ("9.tmp", None),
        ("-1", None),
        ("٣", None),
        ("9" * 19, None),
    ],
)
def test_log_id(name: str, found: int | None) -> None:
    assert log_id(name) == found


@pytest.mark.parametrize(
    ("names", "read", "missing"),
    [
        ([], [], []),
        (["0", "1", "2"], ["0", "1", "2"], []),
        (["10", "9", "2", "0", "1"], ["0", "1", "2", "9", "10"], [3, 4, 5, 6, 7, 8]),
        (["2.compact", "3", "4"], ["2.compact", "3", "4"], []),
        (["0", "1", "2.compact", "3"], ["2.compact", "3"], []),
        (["2.compact", "5.compact", "6", "4"], ["5.compact", "6"], []),
        (["2.compact", "2", "3"], ["2.compact", "3"], []),
        (["9.compact", "11"], ["9.compact", "11"], [10]),
        (["1", "2"], ["1", "2"], [0]),
        (["9.compact", ".10.crc", "_x", ".9.compact.crc"], ["9.compact"], []),
    ],
)
def test_which_entries_list_every_file(
    names: list[str], read: list[str], missing: list[int]
) -> None:
    assert names_to_read(names) == read
    assert missing_ids(names) == missing


def test_a_wild_id_does_not_take_for_ever() -> None:
    missing = missing_ids(["0", "900000000000000000"])
    assert missing[0] == 1
    assert len(missing) <= 1000


@pytest.mark.parametrize(
    ("names", "configured", "interval"),
    [
        (["0", "1"], 10, 10),  # none yet: the setting
        (["2.compact", "3", "4"], 10, 3),  # one, and c + 1 is not above the setting
        (["9.compact"], 10, 10),
        (["19.compact"], 10, 10),  # one above the setting: a divisor of 20 from 10 on
        (["19.compact"], 6, 10),
        (["19.compact"], 11, 20),
        (["22.compact"], 10, 23),  # 23 has no other divisor
        (["4.compact", "9.compact"], 10, 5),  # two: what lies between them
        (["2.compact", "5.compact", "15.compact"], 3, 10),
    ],
)
def test_the_interval_of_compactions(names: list[str], configured: int, interval: int) -> None:
    assert compact_interval(names, configured) == interval


def _entry(*ids: int) -> bytes:
    lines = [f'{{"path":"/in/{i}","timestamp":1,"batchId":{i}}}' for i in ids]
    return "\n".join(["v1", *lines]).encode()


def test_every_file_the_source_has_seen() -> None:
    entries = {
        name: parse_source_log(data)
        for name, data in {
            "0": _entry(0),
            "2.compact": _entry(0, 1, 2),
            "3": _entry(3, 3),
            "4": _entry(4),
        }.items()
    }
    assert [file.batch_id for file in merge_source_logs(entries)] == [0, 1, 2, 3, 3, 4]


def test_files_of_an_offset_range() -> None:
    files = parse_source_log(_entry(0, 1, 2, 2, 3))
    assert [file.batch_id for file in files_between(files, 0, 2)] == [1, 2, 2]
    assert [file.batch_id for file in files_between(files, None, 1)] == [0, 1]
    assert files_between(files, 3, 3) == ()


def test_an_entry_for_a_copy_names_the_copys_files() -> None:
    """Spark reads a sink's folder by the whole paths in its log, which are the original's."""
    line = '{{"path":"{}","size":7,"isDir":false,"modificationTime":1,"action":"add"}}'
    here = "file:///data/out"
    data = "\n".join(
        [
            "v1",
            line.format(f"{here}/part-0.parquet"),
            line.format(f"{here}/day=a%2520b/part-0.parquet"),
            line.format("file:///elsewhere/part-9.parquet"),
        ]
    ).encode()
    inside = {"part-0.parquet", "day=a%20b/part-0.parquet", "_spark_metadata/0"}
    moved = parse_sink_log(with_root(data, "file:///copy/out", inside))
    assert [one.path for one in moved] == [
        "file:///copy/out/part-0.parquet",
        "file:///copy/out/day=a%2520b/part-0.parquet",
        "file:///elsewhere/part-9.parquet",
    ]
    assert [one.size for one in moved] == [7, 7, 7]
    assert with_root(data, here, inside) == data
