"""Snapshots: consistent under a running query, each content once, checked, and brought back."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes.planners.backup import consistent
from floodmark.changes.take_backup import Retention, take_backup
from floodmark.errors import NotACheckpoint, StoppedMidway, WouldLose, WrongUse
from floodmark.storage.files import Folder, open_files
from floodmark.storage.repository import snapshots

DAY_MS = 86_400_000


def tree_of(folder: Path) -> samples.Tree:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "_floodmark" not in path.parts
    }


@pytest.fixture
def cp(tmp_path: Path) -> Path:
    return samples.write(tmp_path / "cp", samples.sales(batches=4))


@pytest.fixture
def repo(cp: Path, tmp_path: Path) -> Path:
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    return tmp_path / "repo"


def objects(repo: Path) -> set[Path]:
    return {path for path in (repo / "objects").rglob("*") if path.is_file()}


def test_equal_contents_are_kept_once(repo: Path, cp: Path) -> None:
    contents = {hashlib.sha256(data).hexdigest() for data in tree_of(cp).values()}
    assert {path.name for path in objects(repo)} == contents
    assert len(contents) < len(tree_of(cp))


def test_a_second_backup_costs_what_is_new(repo: Path, cp: Path) -> None:
    samples.write(cp, {"commits/3": samples.commit_entry(7), "state/0/0/4.delta": b"more"})
    for partition in (1, 2, 3):
        samples.write(cp, {f"state/0/{partition}/4.delta": b"more"})
    before = objects(repo)
    change = api.backup(str(cp), str(repo), carrying=GO)
    assert len(objects(repo) - before) == 2
    new = len(samples.commit_entry(7)) + len(b"more")
    assert f": {new} of " in change.words


def test_restored_elsewhere_it_is_the_same(repo: Path, cp: Path, tmp_path: Path) -> None:
    api.restore(str(repo), str(tmp_path / "again"), carrying=GO)
    assert tree_of(tmp_path / "again") == tree_of(cp)
    before = objects(repo)
    open_files(str(tmp_path / "again")).write("metadata", b"broken")
    (tmp_path / "again/offsets/0").write_bytes(b"broken in place")
    assert objects(repo) == before
    assert api.check_backups(str(repo)) == (1, ())


def test_restored_in_place_and_undone(repo: Path, cp: Path) -> None:
    then = tree_of(cp)
    samples.write(cp, {"commits/3": samples.commit_entry(), "offsets/4": b"v1\n\n1"})
    samples.write(cp, {"offsets/.4.crc": b"crc\0", "metadata": b'{"id":"other"}'})
    now = tree_of(cp)
    with pytest.raises(WouldLose, match="another query's checkpoint: other"):
        api.restore(str(repo), str(cp), carrying=GO)
    assert tree_of(cp) == now
    with pytest.raises(WouldLose, match="repeats and skips have to be accepted first"):
        api.restore(str(repo), str(cp), accept=["another-query"], carrying=GO)
    accepted = ["another-query", "repeats", "skips"]
    api.restore(str(repo), str(cp), accept=accepted, carrying=GO)
    found = tree_of(cp)
    assert found == {**then, "metadata": found["metadata"]}
    assert samples.QUERY_ID.encode() not in found["metadata"]
    api.undo(str(cp), carrying=GO)
    assert tree_of(cp) == now


def test_a_chosen_snapshot(repo: Path, cp: Path, tmp_path: Path) -> None:
    first = api.snapshots(str(repo))[0]
    samples.write(cp, {"metadata": b'{"id":"second"}'})
    api.backup(str(cp), str(repo), carrying=GO)
    api.restore(str(repo), str(tmp_path / "a"), snapshot=first.id, keep_identity=True, carrying=GO)
    api.restore(str(repo), str(tmp_path / "b"), carrying=GO)
    assert api.inspect(str(tmp_path / "a")).query_id == samples.QUERY_ID
    assert api.inspect(str(tmp_path / "b")).query_id == "second"
    with pytest.raises(WrongUse, match="no snapshots have such an id"):
        api.restore(str(repo), str(tmp_path / "c"), snapshot="1999")


def test_damage_is_found_and_never_restored(repo: Path, tmp_path: Path) -> None:
    victim = sorted(objects(repo))[0]
    victim.write_bytes(b"rot")
    number, damage = api.check_backups(str(repo))
    assert number == 1
    assert len(damage) == 1
    with pytest.raises(StoppedMidway, match="damaged") as error:
        api.restore(str(repo), str(tmp_path / "again"), carrying=GO)
    assert "Repeat" not in error.value.do
    assert f"floodmark undo {tmp_path / 'again'} --execute" in error.value.do
    assert "backup --check" in error.value.do
    victim.unlink()
    assert "missing" in api.check_backups(str(repo))[1][0].reason
    api.undo(str(tmp_path / "again"), carrying=GO)
    assert tree_of(tmp_path / "again") == {}


def test_a_snapshot_cut_short(repo: Path, tmp_path: Path) -> None:
    (path,) = (repo / "snapshots").iterdir()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(Exception, match="not a snapshot"):
        api.restore(str(repo), str(tmp_path / "again"), carrying=GO)


def test_retention(cp: Path, tmp_path: Path) -> None:
    files, repo = open_files(str(cp)), open_files(str(tmp_path / "repo"))
    for number in range(6):
        samples.write(cp, {"metadata": b'{"id":"%d"}' % number})
        take_backup(files, "cp", repo, Retention(), now_ms=DAY_MS * (number // 2) + number)
    kept = Retention(keep_last=1, keep_daily=2)
    done = take_backup(files, "cp", repo, kept, now_ms=DAY_MS * 3)
    left = [snapshot.made_ms for snapshot in snapshots(repo)]
    assert left == [DAY_MS * 2 + 5, DAY_MS * 3]
    assert done.removed_snapshots == 5
    assert api.check_backups(str(tmp_path / "repo")) == (2, ())
    named = {file.sha256 for snapshot in snapshots(repo) for file in snapshot.files}
    assert {path.name for path in objects(tmp_path / "repo")} == named


def test_retention_leaves_other_checkpoints_alone(cp: Path, tmp_path: Path) -> None:
    other = samples.write(tmp_path / "other", samples.file_stream())
    repo = str(tmp_path / "repo")
    api.backup(str(other), repo, carrying=GO)
    for _ in range(2):
        api.backup(str(cp), repo, keep_last=1, carrying=GO)
    assert sorted(Path(s.location).name for s in api.snapshots(repo)) == ["cp", "other"]


def test_not_a_repository(tmp_path: Path, cp: Path) -> None:
    with pytest.raises(NotACheckpoint):
        api.restore(str(tmp_path / "nothing"), str(tmp_path / "x"))
    samples.write(tmp_path / "taken", {"a": b""})
    with pytest.raises(WrongUse, match="not empty"):
        api.backup(str(cp), str(tmp_path / "taken"), carrying=GO)
    with pytest.raises(WrongUse, match="inside the other"):
        api.backup(str(cp), str(cp / "repo"), carrying=GO)


class Running(samples.HeldFiles):
    """A query commits batch 3 and plans 4 and 5 right after the commits were listed."""

    moved = False

    def level(self, folder: str = "") -> Folder:
        found = super().level(folder)
        if folder == "commits" and not self.moved:
            self.moved = True
            self.tree["commits/3"] = samples.commit_entry()
            for batch in (4, 5):
                self.tree[f"offsets/{batch}"] = samples.offset_entry(
                    batch, samples.kafka_offset(batch)
                )
        return found


def test_a_running_query_gives_a_commit_and_what_it_needs() -> None:
    found = consistent(Running(samples.sales(batches=4)))
    assert found.committed_batch == 2
    assert found.latest_batch == 3


class Purging(samples.HeldFiles):
    """Maintenance removes a delta that the newest commit needs, and the query moves on."""

    def list(self, folder: str = "", most: int | None = None):  # type: ignore[no-untyped-def]
        listing = super().list(folder, most)
        if "commits/3" not in self.tree:
            for partition in range(4):
                for version in (1, 2):
                    self.tree.pop(f"state/0/{partition}/{version}.delta", None)
                self.tree[f"state/0/{partition}/4.snapshot"] = b"whole"
            self.tree["commits/3"] = samples.commit_entry()
        return listing


def test_state_that_went_while_it_was_read_is_looked_for_again(tmp_path: Path) -> None:
    repo = open_files(str(tmp_path / "repo"))
    done = take_backup(Purging(samples.sales(batches=4)), "cp", repo, Retention())
    assert done.snapshot.batch == 3
    paths = {file.path for file in done.snapshot.files}
    assert "state/0/3/4.snapshot" in paths


class Forgetting(samples.HeldFiles):
    """A query plans and commits a batch, and removes the oldest one, at each fourth read."""

    def read(self, path: str) -> bytes:
        if len(self.reads) % 4 == 3:
            newest = self.newest + 1
            self.tree[f"offsets/{newest}"] = samples.offset_entry(newest, "7")
            self.tree[f"commits/{newest}"] = samples.commit_entry()
            for log in ("offsets", "commits"):
                self.tree.pop(f"{log}/{newest - 20}")
        return super().read(path)

    @property
    def newest(self) -> int:
        return max(int(path[8:]) for path in self.tree if path.startswith("commits/"))


def test_batches_that_are_purged_meanwhile_are_left_out(tmp_path: Path) -> None:
    files = Forgetting(samples.logs(range(20), range(20), lambda _: "7"))
    done = take_backup(files, "cp", open_files(str(tmp_path / "repo")), Retention())
    kept = [file.path.split("/") for file in done.snapshot.files]
    offsets = sorted(int(path[1]) for path in kept if path[0] == "offsets")
    assert offsets == sorted(int(path[1]) for path in kept if path[0] == "commits")
    assert offsets == list(range(offsets[0], 20))
    assert 0 < offsets[0] < 18


def test_state_that_is_gone_for_good_is_said(cp: Path, tmp_path: Path) -> None:
    (cp / "state/0/2/2.delta").unlink()
    with pytest.raises(Exception, match=r"2\.delta is missing"):
        api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    assert not (tmp_path / "repo").exists()
