"""How many requests a look at a checkpoint on S3 sends, and a scan of very many of them."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import samples
from floodmark import api
from floodmark.errors import NotThere
from floodmark.storage.files import Folder, next_page, open_files

if TYPE_CHECKING:
    from services.s3 import S3Server

pytestmark = pytest.mark.services


def _operators(count: int, partitions: int = 30, batches: int = 40) -> samples.Tree:
    """A stream with several operators, each with more files than one listing gives."""
    tree = samples.sales(batches, partitions)
    state = {path: data for path, data in tree.items() if path.startswith("state/0/")}
    for operator in range(1, count):
        rest = {path.removeprefix("state/0/"): data for path, data in state.items()}
        tree |= {f"state/{operator}/{path}": data for path, data in rest.items()}
        tree[f"state/{operator}/_metadata/metadata"] = samples.operator_metadata(
            operator, partitions
        )
    return tree


def _put(s3: S3Server, tree: samples.Tree, name: str = "requests") -> str:
    url = s3.place(name)
    # The server's bucket is a folder: thousands of PUTs would take a minute.
    samples.write(s3.objects(url), tree)
    return url


@pytest.mark.parametrize("operators", [1, 2, 4])
def test_inspect_of_large_operators_sends_at_most_eight(s3: S3Server, operators: int) -> None:
    tree = _operators(operators)
    assert sum(path.startswith("state/0/") for path in tree) > 1000
    url = _put(s3, tree)
    with s3.requests() as sent:
        found = api.inspect(url, s3.storage_options)
    assert sent.total() <= 8
    assert (found.latest_batch, found.committed_batch, found.unreadable) == (39, 38, ())
    assert found.query_id == samples.QUERY_ID
    assert not found.files_complete
    assert [(one.operator, one.partitions) for one in found.state] == [
        (operator, 30) for operator in range(operators)
    ]
    # What is not known is said; no operator is hidden.
    named = [one.operator for one in found.state if one.name]
    assert named == list(range(min(operators, 2)))
    assert found.not_read == tuple(f"state/{n}/_metadata/metadata" for n in range(2, operators))


def test_inspect_of_many_small_operators_sends_at_most_eight(s3: S3Server) -> None:
    url = _put(s3, _operators(9, partitions=2, batches=3))
    with s3.requests() as sent:
        found = api.inspect(url, s3.storage_options)
    assert sent.total() <= 8
    assert len(found.state) == 9
    assert len(found.not_read) == 6


def test_inspect_passes_over_what_changes_have_kept(s3: S3Server) -> None:
    tree = _operators(2)
    tree |= {f"_floodmark/kept/1/state/0/{n}/1.delta": b"x" for n in range(1100)}
    url = _put(s3, tree)
    with s3.requests() as sent:
        found = api.inspect(url, s3.storage_options)
    assert sent.total() <= 8
    assert (found.latest_batch, len(found.state)) == (39, 2)


def test_inspect_lists_no_state_behind_long_logs(s3: S3Server) -> None:
    tree = _operators(2) | samples.logs(range(2490, 2500), range(2499))
    url = _put(s3, tree)
    with s3.requests() as sent:
        found = api.inspect(url, s3.storage_options)
    # Two pages more than else: commits that nobody removed. The state's 2,400 files are not listed.
    assert sent.total() <= 10
    assert (found.latest_batch, found.committed_batch) == (2499, 2498)


def test_a_page_begins_after_a_name(s3: S3Server) -> None:
    files = open_files(_put(s3, samples.logs(range(3), range(3))), s3.storage_options)
    page = next_page(files, "commits/2")
    assert page is not None
    assert [file.path for file in page.files] == ["metadata", "offsets/0", "offsets/1", "offsets/2"]
    assert page.complete


def test_a_folder_that_is_not_there_is_one_request(s3: S3Server) -> None:
    files = open_files(_put(s3, samples.logs(range(3), range(3))), s3.storage_options)
    with s3.requests() as sent:
        assert files.level("_floodmark") == Folder((), ())
        assert not files.list("_floodmark").files
    assert sent == {"GET": 2}


def test_a_place_that_is_not_there_is_three_requests(s3: S3Server) -> None:
    """A listing, whether it is a file, and whether there is the bucket."""
    files = open_files(s3.place("nothing"), s3.storage_options)
    with s3.requests() as sent, pytest.raises(NotThere):
        files.list()
    assert sent == {"GET": 1, "HEAD": 2}


def test_a_level_and_a_listing_of_many_pages(s3: S3Server) -> None:
    tree = {f"offsets/{n}": b"v1" for n in range(1050)} | {"offsets/deep/1": b"", "a/b": b""}
    files = open_files(_put(s3, tree), s3.storage_options)
    with s3.requests() as sent:
        found = files.level("offsets")
    assert sent == {"GET": 2}
    assert (len(found.files), found.folders) == (1050, ("deep",))
    with s3.requests() as sent:
        assert {file.path for file in files.list().files} == set(tree)
    assert sent == {"GET": 2}
    first = files.list("offsets", most=10)
    assert (len(first.files), first.complete) == (10, False)
    assert files.list("a", most=10).complete


def _strewn(s3: S3Server) -> tuple[str, set[str]]:
    """A bucket with checkpoints among other things, as they lie in a lake."""
    small = samples.sales(3, partitions=2)
    tree = {f"a/b/ck-{n}/{path}": data for n in range(60) for path, data in small.items()}
    tree |= {f"big/{path}": data for path, data in _operators(2).items()}
    tree |= {f"bigger/x/{path}": data for path, data in samples.sales(3, partitions=2).items()}
    tree |= {f"lake/part-{n:05}.parquet": b"x" for n in range(1500)}
    tree |= {f"lake/_delta_log/{n:020}.json": b"x" for n in range(1500)}
    # A folder whose first names tell nothing, one that is none at all, and what a change kept.
    tree |= {f"odd/{path}": data for path, data in {"aaa/x": b"", **small}.items()}
    tree |= {"none/metadata": b"{}", "none/deep/offsets/0": b"v1", "none/deep/metadata": b"{}"}
    tree |= {f"a/b/ck-0/_floodmark/kept/1/{path}": data for path, data in small.items()}
    expected = {f"a/b/ck-{n}" for n in range(60)} | {"big", "bigger/x", "odd", "none/deep"}
    return _put(s3, tree, "lake"), expected


def test_a_scan_by_listings_finds_what_a_walk_finds(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, expected = _strewn(s3)
    with s3.requests() as sent:
        found = sorted(api.scan(url, s3.storage_options), key=lambda one: one.path)
    by_listings = sent.total()
    assert {one.path.removeprefix(url + "/") for one in found} == expected
    monkeypatch.setattr("floodmark.storage.listing.scan.next_page", lambda *_: None)
    with s3.requests() as sent:
        walked = sorted(api.scan(url, s3.storage_options), key=lambda one: one.path)
    assert [replace(one, bytes=0) for one in found] == [replace(one, bytes=0) for one in walked]
    differ = [one.path for one, other in zip(found, walked, strict=True) if one != other]
    assert differ == [f"{url}/big"], "neither lists all of the large one"
    assert by_listings < sent.total() - 2 * 60, "a listing and a level for each of the 60"


def _scanned(s3: S3Server, count: int) -> tuple[Any, int]:
    small = samples.sales(3, partitions=2)
    url = s3.place("many")
    folder = s3.objects(url)
    for number in range(count):
        samples.write(folder / f"team-{number // 100}" / f"stream-{number}", small)
    with s3.requests() as sent:
        found = list(api.scan(url, s3.storage_options))
    assert len(found) == count
    assert {one.committed_batch for one in found} == {1}
    return sent, len(small)


def test_requests_of_a_scan(s3: S3Server) -> None:
    sent, files = _scanned(s3, 100)
    # 7 reads of each; the listings are those of its files, a thousand at a time.
    assert sent.total() <= 100 * 7 + 100 * files / 1000 + 6


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_requests_of_a_scan_of_ten_thousand(s3: S3Server) -> None:
    count = int(os.environ.get("FLOODMARK_SCAN_CHECKPOINTS", "10000"))
    begun = time.monotonic()
    sent, files = _scanned(s3, count)
    seconds = time.monotonic() - begun
    print(
        f"\n{count} checkpoints of {files} files: {sent.total() / count:.3f} requests each, "
        f"{seconds:.0f} s with the writing of them"
    )
    assert sent.total() <= count * 7 + count * files / 1000 + 6
