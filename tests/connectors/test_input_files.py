from __future__ import annotations

from collections.abc import Sequence

import pytest

import samples
from floodmark.connectors.files.file_log import SourceFile, parse_source_log
from floodmark.connectors.files.input_files import Taken, file_sources, input_files
from floodmark.connectors.files.input_folder import passes_filter


def _seen(ids: Sequence[int]) -> tuple[SourceFile, ...]:
    lines = [f'{{"path":"/in/a%20{i}","timestamp":{i},"batchId":{i}}}' for i in ids]
    return parse_source_log("\n".join(["v1", *lines]).encode())


def _taken(ends: dict[int, str], seen: Sequence[int], source: str = "0") -> list[object]:
    tree = samples.logs(ends, ends, offset=lambda batch: ends[batch])
    found = input_files(samples.checkpoint(tree), {source: _seen(seen)})
    return [file.taken.value if file.batch is None else file.batch for file in found]


def test_log_ids_are_not_batch_ids() -> None:
    ends = {0: '{"logOffset":0}', 1: '{"logOffset":3}', 2: '{"logOffset":3}', 3: '{"logOffset":4}'}
    assert _taken(ends, [0, 1, 2, 3, 3, 4, 5]) == [0, 1, 1, 1, 1, 3, "waiting"]


def test_the_oldest_entry_that_is_left_tells_only_its_end() -> None:
    ends = {7: '{"logOffset":10}', 8: '{"logOffset":12}'}
    assert _taken(ends, [0, 9, 10, 11, 12]) == ["earlier", "earlier", "earlier", 8, 8]


def test_2_1_wrote_a_bare_number() -> None:
    tree = samples.logs([0, 1], [0], offset=lambda batch: str(batch))
    tree["sources/0/0"] = b'v1\n{"path":"/in/0","timestamp":1,"batchId":0}'
    found = samples.checkpoint(tree)
    assert file_sources(found) == ("0",)
    assert [file.batch for file in input_files(found, {"0": _seen([0, 1])})] == [0, 1]


def test_a_source_that_began_later_took_its_files_itself() -> None:
    ends = {0: "4\n-", 1: "5\n-", 2: '6\n{"logOffset":1}', 3: '7\n{"logOffset":2}'}
    assert _taken(ends, [0, 1, 2], source="1") == [2, 2, 3]


def test_what_is_told_of_a_file() -> None:
    tree = samples.file_stream()
    found = input_files(samples.checkpoint(tree), {"0": _seen([2, 3])})
    assert [(file.path, file.log_id, file.timestamp_ms) for file in found] == [
        ("/in/a 2", 2, 2),
        ("/in/a 3", 3, 3),
    ]
    assert [file.taken for file in found] == [Taken.BY_BATCH, Taken.WAITING]


def test_only_file_sources_have_files() -> None:
    tree = samples.logs([0], [0], offset=lambda _: '{"t":{"0":1}}\n{"logOffset":1}\n12')
    assert file_sources(samples.checkpoint(tree)) == ("1",)


@pytest.mark.parametrize(
    ("glob", "takes", "leaves"),
    [
        ("*.{csv,txt}", "a.csv", "a.json"),
        ("{p-[0-9],q?}.csv", "p-2.csv", "p-x.csv"),
        ("[^a]*", "b1", "a1"),
        ("[!a]*", "b1", "a1"),
        ("a,b.c", "a,b.c", "axb.c"),
        ("a\\*", "a*", "ab"),
        ("{a", "{a", "a"),
        ("[z-a]", "[z-a]", "z"),
    ],
)
def test_a_filter_of_names_is_hadoops(glob: str, takes: str, leaves: str) -> None:
    assert passes_filter(takes, {"pathglobfilter": glob})
    assert not passes_filter(leaves, {"pathglobfilter": glob})
    assert passes_filter(leaves, {})
