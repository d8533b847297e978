from __future__ import annotations

import pytest

from floodmark.checkpoint.layout import (
    FileInfo,
    StateFile,
    batch_id,
    batch_ids,
    is_dstreams_checkpoint,
    is_temporary,
    names_in,
    operator_metadata_paths,
    parse_state_file,
    source_ids,
    state_files,
    store_folder,
)

UUID = "0f6e1d0a-7a0e-4b57-9f0e-2d3c4b5a6978"


def _files(*paths: str) -> tuple[FileInfo, ...]:
    return tuple(FileInfo(path, 1) for path in paths)


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("0", 0),
        ("12", 12),
        ("foo", None),
        (".9.x.tmp", None),
        (".0.crc", None),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("9.compact", None),
        ("²", None),
        ("٣", None),
        ("007", None),  # Spark would look for a file named 7
        ("9" * 18, 999_999_999_999_999_999),
        ("9" * 19, None),
    ],
)
def test_a_log_files_name(name: str, batch: int | None) -> None:
    assert batch_id(name) == batch


def test_batches_of_a_log() -> None:
    files = _files(
        "offsets/10", "offsets/9", "offsets/.9.crc", "offsets/foo", "offsets/3/x", "commits/9"
    )
    assert batch_ids(files, "offsets") == (9, 10)
    assert batch_ids(files, "commits") == (9,)


def test_sources_by_number_then_by_name() -> None:
    files = _files("sources/10/0", "sources/2/0", "sources/orders/0", "sources/2/1", "offsets/0")
    assert source_ids(files) == ("2", "10", "orders")


def test_names_right_under_a_folder() -> None:
    files = _files("sources/0/1", "sources/0/.1.crc", "sources/0/deep/2", "sources/01/3")
    assert names_in(files, "sources/0") == ("1",)
    assert names_in(files, "sources/0/") == ("1",)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("state/0/3/7.delta", (0, 3, "default", 7, None, "delta", "hdfs")),
        ("state/0/3/7.snapshot", (0, 3, "default", 7, None, "snapshot", "hdfs")),
        ("state/1/0/12.zip", (1, 0, "default", 12, None, "zip", "rocksdb")),
        ("state/1/0/12.changelog", (1, 0, "default", 12, None, "changelog", "rocksdb")),
        (f"state/0/0/5_{UUID}.zip", (0, 0, "default", 5, UUID, "zip", "rocksdb")),
        (f"state/0/0/5_{UUID}.changelog", (0, 0, "default", 5, UUID, "changelog", "rocksdb")),
        (
            "state/0/4/left-keyToNumValues/1.delta",
            (0, 4, "left-keyToNumValues", 1, None, "delta", "hdfs"),
        ),
        (
            f"state/0/4/right-keyWithIndexToValue/2_{UUID}.zip",
            (0, 4, "right-keyWithIndexToValue", 2, UUID, "zip", "rocksdb"),
        ),
    ],
)
def test_state_files(path: str, expected: tuple[object, ...]) -> None:
    found = parse_state_file(path, 9)
    assert found is not None
    assert (
        found.operator,
        found.partition,
        found.store,
        found.version,
        found.unique_id,
        found.kind,
        found.provider,
    ) == expected
    assert (found.path, found.size) == (path, 9)


@pytest.mark.parametrize(
    "path",
    [
        "state/0/0/.7.delta.crc",
        "state/0/0/7.delta.crc",
        f"state/0/0/.7.delta.{UUID}.TID812.tmp",
        "state/0/0/temp-123",
        "state/0/0/SSTs/000008-9b6e.sst",
        "state/0/0/_metadata/schema",
        "state/0/_metadata/metadata",
        "state/0/_metadata/v2/0",
        f"state/0/_stateSchema/default/0_{UUID}",
        "state/x/0/1.delta",
        "state/0/x/1.delta",
        "state/0/1.delta",
        "state/0/0/a/b/1.delta",
        "offsets/0/0/1.delta",
        "state/0/0/1.txt",
    ],
)
def test_what_is_no_state_file(path: str) -> None:
    assert parse_state_file(path) is None


def test_state_files_of_a_listing() -> None:
    found = state_files(_files("state/0/0/1.delta", "state/0/0/.1.delta.crc", "offsets/1"))
    assert found == (StateFile("state/0/0/1.delta", 0, 0, "default", 1, None, "delta", 1),)


def test_where_a_stores_files_lie() -> None:
    assert store_folder(0, 3) == "state/0/3"
    assert store_folder(2, 0, "left-keyToNumValues") == "state/2/0/left-keyToNumValues"


def test_where_an_operator_describes_itself() -> None:
    files = _files(
        "state/0/_metadata/metadata",
        "state/0/_metadata/v2/0",
        "state/0/_metadata/v2/9",
        "state/0/_metadata/v2/10",
        "state/0/_metadata/v2/.10.crc",
        "state/1/_metadata/metadata",
    )
    newest = ["state/0/_metadata/v2/10", "state/0/_metadata/metadata"]
    assert operator_metadata_paths(files, 0) == newest
    assert operator_metadata_paths(files, 0, 9)[0] == "state/0/_metadata/v2/9"
    assert operator_metadata_paths(files, 1) == ["state/1/_metadata/metadata"]
    assert operator_metadata_paths(files, 2) == []


@pytest.mark.parametrize(
    ("name", "yes"),
    [
        ("checkpoint-1700000000000", True),
        ("checkpoint-1700000000000.bk", True),
        ("checkpoint", False),
        ("checkpoint-new", False),
        ("checkpoint-1.txt", False),
    ],
)
def test_a_dstreams_checkpoint_file(name: str, yes: bool) -> None:
    assert is_dstreams_checkpoint(name) is yes


@pytest.mark.parametrize(
    ("name", "yes"),
    [
        (f".{UUID}.tmp", True),  # 2.1 to 2.3
        (f".7.{UUID}.tmp", True),
        (f".5.delta.{UUID}.TID812.tmp", True),
        ("temp-8123456789", True),
        ("temp--8123456789", True),  # a random long is negative half of the time
        ("7", False),
        (".7.crc", False),
        ("7.delta", False),
        ("temperature", False),
    ],
)
def test_a_write_that_never_finished(name: str, yes: bool) -> None:
    assert is_temporary(name) is yes
