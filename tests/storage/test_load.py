"""Files to Checkpoint: on every storage, damaged or not, and at what price."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import samples
from floodmark import api
from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.checkpoint.restart import Action, restart
from floodmark.checkpoint.timeline import timeline
from floodmark.connectors.files.live import read_source_log
from floodmark.diagnosis.gather import gather
from floodmark.errors import CannotRead, FloodmarkError, MalformedFile, NotACheckpoint
from floodmark.rules.registry import examine
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import Entries, load, load_logs
from floodmark.wire import dumps

STORAGES = ["local", "memory", pytest.param("s3", marks=pytest.mark.services)]
_NUMBERS = itertools.count()


@pytest.fixture(params=STORAGES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    if request.param == "local":
        (tmp_path / "ck").mkdir()
        yield open_files(str(tmp_path / "ck"))
    elif request.param == "memory":
        yield open_files(f"memory://load-{next(_NUMBERS)}/ck")
    else:
        s3 = request.getfixturevalue("s3")
        yield open_files(s3.place("load"), s3.storage_options)


def _unreadable(found: Checkpoint) -> dict[str, str]:
    return {item.path: item.reason for item in found.unreadable}


def test_a_sound_checkpoint(place: Files) -> None:
    tree = samples.sales(8)
    found = load(samples.put(place, tree))
    assert found.path == place.root
    assert found.kind is Kind.STRUCTURED_STREAMING
    assert (found.latest_batch, found.committed_batch, found.in_flight_batch) == (7, 6, 7)
    assert {file.path for file in found.files} == set(tree)
    assert found.bytes == sum(map(len, tree.values()))
    assert found.complete
    assert found.unreadable == ()
    assert found.sources_of(6)[0].offset == {"orders": {"0": 448, "1": 554}}
    assert found.state_operators[0].name == "stateStoreSave"


def test_every_batch(place: Files) -> None:
    samples.put(place, samples.sales(8))
    for found in (load(place, Entries.ALL), load_logs(place)):
        assert sorted(found.offsets) == list(range(8))
        assert sorted(found.commits) == list(range(7))
    assert not load_logs(place).state_files, "the logs are listed without the state"


def test_a_batch_that_was_asked_for(place: Files) -> None:
    samples.put(place, samples.sales(8))
    assert load(place, batches=[2]).sources_of(2)[0].offset == {"orders": {"0": 416, "1": 518}}


DAMAGES = {
    "empty": (b"", "empty"),
    "cut short": (b'v1\n{"batchWatermarkMs":0,"batchTim', "not JSON"),
    "cut short in an offset": (b'v1\n{"batchTimestampMs":1}\n{"orders":{"0":', "cut short"),
    "not UTF-8": (b"v1\n\xff\xfe", "not UTF-8"),
    "unknown version": (b"v9\n{}\n0", "format version 'v9'; this floodmark reads up to 'v2'"),
    "no version": (b"PK\x03\x04", "not a version"),
    "damaged inside": (b'v1\n{"batchTimestampMs":1}\n{"orders" 1}', "offset is not JSON"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_newest_entry_damaged(place: Files, damage: str) -> None:
    data, words = DAMAGES[damage]
    found = load(samples.put(place, samples.sales(3) | {"offsets/2": data}))
    assert list(_unreadable(found)) == ["offsets/2"]
    assert words in _unreadable(found)["offsets/2"]
    # The rest is still told.
    assert (found.latest_batch, found.committed_batch) == (2, 1)
    assert found.query_id == samples.QUERY_ID
    assert found.state_operators[0].partitions == 4
    assert found.sources_of(1)[0].offset == {"orders": {"0": 408, "1": 509}}
    assert restart(found).action is Action.FAIL
    assert [batch.batch for batch in timeline(load_logs(place))] == [0, 1, 2]


@pytest.mark.parametrize(
    ("path", "data", "words"),
    [
        ("metadata", b"", "empty"),
        ("metadata", b"{", "not JSON"),
        ("commits/1", b"v9\n", "reads up to 'v3'"),
        ("state/0/_metadata/metadata", b"v9\n", "reads up to 'v2'"),
    ],
)
def test_another_file_damaged(place: Files, path: str, data: bytes, words: str) -> None:
    found = load(samples.put(place, samples.sales(3) | {path: data}))
    assert list(_unreadable(found)) == [path]
    assert words in _unreadable(found)[path]
    assert (found.latest_batch, found.committed_batch, found.in_flight_batch) == (2, 1, 2)
    assert found.sources[0].offset == {"orders": {"0": 416, "1": 518}}


def test_all_of_it_damaged_is_still_a_checkpoint(place: Files) -> None:
    tree = {"metadata": b"?", "offsets/0": b"?", "commits/0": b"?"}
    found = load(samples.put(place, tree))
    assert set(_unreadable(found)) == set(tree)
    assert (found.latest_batch, found.committed_batch) == (0, 0)


def test_where_reading_is_free_damage_further_down_is_found_at_once() -> None:
    tree = samples.sales(8) | {"offsets/1": b"v1", "commits/2": b"x", "offsets/3": b""}
    free = load(samples.HeldFiles(tree))
    assert set(_unreadable(free)) == {"offsets/1", "commits/2", "offsets/3"}
    costly = load(samples.HeldFiles(tree, reads_cost=True))
    assert set(_unreadable(costly)) == {"offsets/3"}, "an empty file shows in the listing"


@pytest.mark.parametrize("path", ["offsets/2", "offsets/1", "commits/1", "metadata"])
def test_a_file_gone_between_listing_and_reading(path: str) -> None:
    found = load(samples.HeldFiles(samples.sales(3), gone=[path]), Entries.ALL)
    assert _unreadable(found) == {
        path: "gone between listing and reading: a running query removes old entries"
    }
    assert (found.latest_batch, found.committed_batch) == (2, 1)
    assert sorted(found.offsets) == [b for b in range(3) if path != f"offsets/{b}"]


def test_a_running_query_that_purges_its_logs_damages_nothing() -> None:
    """Both logs lose their oldest entries while they are read, one file after the other."""
    tree = samples.sales(8) | {"offsets/.2.crc": b"crc", "commits/.1.crc": b"crc"}
    files = samples.HeldFiles(tree, gone=["offsets/0", "commits/0", "commits/1", "offsets/2"])
    found = gather(files)
    checkpoint = found.checkpoint
    assert not checkpoint.unreadable
    assert checkpoint.offset_ids == (3, 4, 5, 6, 7)
    assert checkpoint.commit_ids == (3, 4, 5, 6)
    assert not [file for file in checkpoint.files if file.path.endswith(".crc")]
    assert not [one for one in examine(found) if one.path.startswith(("offsets", "commits"))]


def test_a_stream_that_has_gone_on_is_listed_again() -> None:
    class Live(samples.HeldFiles):
        def read_many(self, paths: Iterable[str]) -> dict[str, bytes | FloodmarkError]:
            self.tree = samples.logs(range(20, 26), range(20, 25))
            return super().read_many(paths)

    found = load(Live(samples.sales(3)))
    assert not found.unreadable
    assert found.latest_batch == 25


def test_a_files_log_entry_gone_between_listing_and_reading() -> None:
    files = samples.HeldFiles(samples.file_stream(), gone=["sources/0/1"])
    with pytest.raises(CannotRead, match="sources/0/1"):
        read_source_log(files, load_logs(files), "0")


def test_a_hole_in_the_list_of_seen_files() -> None:
    tree = samples.file_stream()
    del tree["sources/0/1"]
    files = samples.HeldFiles(tree)
    with pytest.raises(MalformedFile, match="entry 1 of the file source's log is missing"):
        read_source_log(files, load_logs(files), "0")


def test_a_damaged_list_of_seen_files_names_the_file() -> None:
    files = samples.HeldFiles(samples.file_stream() | {"sources/0/2": b"v1\n{"})
    with pytest.raises(MalformedFile, match="held/sources/0/2: an entry is not JSON"):
        read_source_log(files, load_logs(files), "0")


def test_an_empty_place(tmp_path: Path) -> None:
    fsspec.filesystem("memory").makedirs("/load-empty", exist_ok=True)
    for location in (str(tmp_path), "memory://load-empty"):
        with pytest.raises(NotACheckpoint, match="is empty: there is no checkpoint in it"):
            load(open_files(location))


def test_what_is_no_checkpoint(place: Files) -> None:
    place.write("data.csv", b"a,b")
    place.write("_delta_log/00000.json", b"{}")
    for ask in (load, load_logs):
        with pytest.raises(NotACheckpoint, match="is not a checkpoint") as caught:
            ask(place)
        assert "neither a metadata file nor an offsets or commits folder" in caught.value.why


def test_a_folder_of_checkpoints(place: Files) -> None:
    place.write("sales/metadata", b"{}")
    place.write("sales/offsets/0", b"{}")
    with pytest.raises(NotACheckpoint, match="is not a checkpoint, but holds some") as caught:
        load(place)
    assert f"{place.root}/sales" in caught.value.why
    assert f"floodmark scan {place.root}" in caught.value.do


@pytest.mark.parametrize("data", [b"", b"not JSON", b"\xff"])
def test_a_metadata_file_alone_that_cannot_be_read(place: Files, data: bytes) -> None:
    place.write("metadata", data)
    with pytest.raises(NotACheckpoint, match="metadata") as caught:
        load(place)
    assert "neither a metadata file" not in caught.value.why


def test_only_metadata_yet(place: Files) -> None:
    place.write("metadata", b'{"id":"x"}')
    for found in (load(place), load_logs(place)):
        assert (found.query_id, found.latest_batch) == ("x", None)


def test_only_logs(place: Files) -> None:
    tree = samples.sales(2)
    del tree["metadata"]
    found = load(samples.put(place, tree))
    assert (found.query_id, found.latest_batch) == (None, 1)


def test_temporary_and_hidden_files_are_no_batches(place: Files) -> None:
    tree = samples.sales(2) | {
        "offsets/.2.0f6e.tmp": b"half",
        "offsets/.1.crc": b"crc",
        "offsets/notes": b"?",
        "commits/.0.crc": b"crc",
    }
    found = load(samples.put(place, tree))
    assert (found.offset_ids, found.commit_ids) == ((0, 1), (0,))
    assert found.unreadable == ()


def test_dstreams(place: Files) -> None:
    place.write("checkpoint-1700000000000", b"\xac\xed")
    place.write("checkpoint-1700000000000.bk", b"\xac\xed")
    place.write("3f/rdd-7/part-00000", b"x")
    found = load(place)
    assert found.kind is Kind.DSTREAMS
    assert len(found.files) == 3
    assert load_logs(place).kind is Kind.DSTREAMS


def test_an_unreadable_folder_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    samples.write(tmp_path, samples.sales(3))
    opened = os.open

    def choosy(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "2" and flags & os.O_DIRECTORY:
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr("floodmark.storage.local.os.open", choosy)
    found = load(open_files(str(tmp_path)))
    assert _unreadable(found) == {"state/0/2": "Permission denied"}
    assert found.latest_batch == 2


def test_a_listing_that_stops_before_the_state_is_taken_up_again() -> None:
    # 2,500 old commits: the first 2,000 names do not reach the offsets.
    tree = samples.logs(range(2490, 2500), range(2499))
    files = samples.HeldFiles(tree, reads_cost=True)
    found = load(files)
    assert (found.latest_batch, found.committed_batch) == (2499, 2498)
    assert len(found.commit_ids) == 2499
    assert len(files.reads) < 10


def test_a_long_log_is_not_read_to_show_where_it_stands() -> None:
    files = samples.HeldFiles(samples.logs(range(2000), range(2000)))
    load(files)
    assert len(files.reads) < 10


def test_one_damaged_entry_of_very_many_hides_none() -> None:
    tree = samples.logs(range(600), range(600)) | {"offsets/3": b'v1\n{}\n{"a" 1}'}
    found = timeline(load_logs(samples.HeldFiles(tree)))
    assert len(found) == 600
    assert found[3].sources[0].offset == '{"a" 1}'


# What it costs on S3 ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def costs(s3: Any) -> dict[str, dict[str, int]]:
    """How many requests `inspect` sends, by the size of the checkpoint."""
    trees = {
        "small": samples.sales(5, partitions=4),
        "long": samples.sales(120, partitions=4),
        "large": samples.sales(101, partitions=30),
    }
    found = {}
    for name, tree in trees.items():
        url = s3.place(name)
        # The server's bucket is a folder: thousands of PUTs would take a minute.
        samples.write(s3.folder / "objects" / url.removeprefix("s3://"), tree)
        with s3.requests() as sent:
            seen = json.loads(dumps(api.inspect(url, s3.storage_options)))
        assert seen["latest_batch"] == int(max(map(int, _batches(tree))))
        assert seen["unreadable"] == []
        (state,) = seen["state"]
        found[name] = {
            "requests": sum(sent.values()),
            "partitions": state["partitions"],
            "named": state["name"] == "stateStoreSave",
        }
    return found


def _batches(tree: dict[str, bytes]) -> list[str]:
    return [path.split("/")[1] for path in tree if path.startswith("offsets/")]


@pytest.mark.services
def test_inspect_costs_the_same_however_many_batches(costs: dict[str, dict[str, int]]) -> None:
    assert costs["small"]["requests"] == costs["long"]["requests"]
    assert costs["long"]["requests"] <= 8


@pytest.mark.services
def test_inspect_of_three_thousand_state_files(costs: dict[str, dict[str, int]]) -> None:
    assert costs["large"]["requests"] <= 8
    assert costs["large"]["partitions"] == 30
    assert costs["large"]["named"], "what names the operator lies behind the stopped listing"


@pytest.mark.services
def test_a_server_error_in_the_middle_is_ours(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = s3.place("error")
    files = samples.put(open_files(url, s3.storage_options), samples.sales(2))

    def broken(path: str) -> bytes:
        raise RuntimeError("the driver fell over")

    monkeypatch.setattr(files.fs, "cat_file", broken)  # type: ignore[attr-defined]
    with pytest.raises(FloodmarkError, match="storage answered with an error"):
        files.read("metadata")
    found = load(files)
    assert "the driver fell over" in _unreadable(found)["metadata"]
    assert found.latest_batch == 1


def test_operators_behind_a_stopped_listing_are_found() -> None:
    tree = samples.sales(60, partitions=30)
    for partition in range(30):
        tree[f"state/1/{partition}/left-keyToNumValues/60.delta"] = b"x"
        tree[f"state/1/{partition}/right-keyToNumValues/60.delta"] = b"x"
    found = load(samples.HeldFiles(tree, reads_cost=True))
    assert found.complete is False
    first, second = found.state_operators
    assert (first.name, first.partitions) == ("stateStoreSave", 30)
    assert second.stores == JOIN_STORES
