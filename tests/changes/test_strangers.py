"""Checkpoints, journals, repositories and plans that a stranger has made: nobody is let in.

Beside every place lies a bait folder. Whatever the stranger has written, it stays as it is, and
what is in it gets nowhere else.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes import journal
from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock
from floodmark.changes.journal import Record, Stage
from floodmark.changes.plan import (
    EMPTY,
    UNCHANGED,
    Plan,
    Precondition,
    digest_of,
    plan_to_json,
    render_plan,
    seal,
)
from floodmark.changes.plan.saved import save_plan
from floodmark.changes.plan.steps import (
    SINK,
    CopyFile,
    DeleteFile,
    RestoreFile,
    RewriteState,
    Step,
    TakeSnapshot,
    WriteFile,
    write,
)
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.cli.main import run
from floodmark.errors import (
    EditedPlan,
    FloodmarkError,
    MalformedFile,
    NoAnswer,
    Refused,
    Unfinished,
    UnsafePath,
)
from floodmark.storage import repository as backup
from floodmark.storage.files import open_files
from floodmark.storage.local import LocalFiles

PLAN = Carrying(clock=Clock(pause=lambda seconds: None))
SECRET = b"ssh-rsa SECRET\n"
GOLDEN = Path(__file__).parent.parent / "golden/4.2/sales-hdfs/checkpoint"


class Bait:
    """A folder that nothing may touch, and whose content may get nowhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".ssh").mkdir(parents=True)
        (folder / "_spark_metadata").mkdir()
        for number in range(5):
            (folder / f"_spark_metadata/{number}").write_bytes(b"v1\n" + SECRET)
        (folder / "thesis.txt").write_bytes(SECRET)
        (folder / ".ssh/authorized_keys").write_bytes(SECRET)
        (folder / ".ssh/authorized_keys").chmod(0o600)
        self.before = self.seen()

    def seen(self) -> dict[str, tuple[int, bytes | None]]:
        return {
            str(path.relative_to(self.folder)): (
                path.lstat().st_mode,
                path.read_bytes() if path.is_file() else None,
            )
            for path in [self.folder, *self.folder.rglob("*")]
        }

    def untouched(self) -> bool:
        return self.seen() == self.before


@pytest.fixture
def bait(tmp_path: Path) -> Bait:
    return Bait(tmp_path / "home")


@pytest.fixture
def cp(tmp_path: Path) -> Path:
    return samples.write(tmp_path / "cp", samples.sales(batches=4, partitions=1))


def leaked(*places: Path) -> list[Path]:
    """Regular files outside of the bait that hold what is in it."""
    return [
        path
        for place in places
        for path in place.rglob("*")
        if path.is_file() and not path.is_symlink() and SECRET.strip() in path.read_bytes()
    ]


def forge(cp: Path, steps: Iterable[Step], stage: Stage = Stage.BEGUN, **said: Any) -> Plan:
    """A journal that no command wrote, with the digest that fits it."""
    location = str(cp)
    plan = Plan(
        said.pop("verb", "rewind"),
        "Back to batch 1",
        said.pop("origin", location),
        said.pop("target", location),
        tuple(steps),
        said.pop("preconditions", (Precondition(UNCHANGED, "x"),)),
        "",
        "batch 2",
        99,
        **said,
    )
    plan = seal(plan)
    value = {"floodmark": "journal", "version": 1, "stage": stage.value, "number": 1, "after": ""}
    path = cp / journal.path_of(plan)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**value, "plan": plan_to_json(plan)}))
    return plan


def blocked(cp: Path, plan: Plan) -> None:
    journal.block(open_files(str(cp)), plan)


EVIL_STEPS = {
    "undo-deletes": CopyFile("../home/thesis.txt", "x", "offsets/0"),
    "undo-writes": WriteFile("../home/.ssh/authorized_keys", "x", text="", replaces=True),
    "absolute": WriteFile("/tmp/../{home}/.bashrc", "x", text="evil"),
    "inside-and-out": DeleteFile("offsets/../../home/thesis.txt", "x", replaces=True),
    "empties-all": RewriteState("", "x", how={}),
    "copies-in": CopyFile("offsets/9", "x", origin="../home/thesis.txt"),
    "no-sink-log": WriteFile(".ssh/authorized_keys", "x", text="evil", place=SINK),
    "out-of-the-sink": DeleteFile("_spark_metadata/../thesis.txt", "x", place=SINK),
}


@pytest.mark.parametrize("step", EVIL_STEPS.values(), ids=EVIL_STEPS.keys())
@pytest.mark.parametrize("stage", list(Stage))
@pytest.mark.parametrize("verb", ["rewind", "compact", "repair", "copy"])
def test_a_forged_journal_leads_nowhere(
    verb: str, stage: Stage, step: Step, cp: Path, bait: Bait, tmp_path: Path
) -> None:
    plan = forge(cp, [step], stage, verb=verb, sink=str(bait.folder), options={"keep": None})
    blocked(cp, plan)
    kept = cp / journal.kept_folder(plan) / "sink/.ssh"
    kept.mkdir(parents=True)
    (kept / "authorized_keys").write_text("ssh-rsa ATTACKER\n")
    for attempt in (
        lambda: api.undo(str(cp), carrying=GO),
        lambda: api.undo(str(cp), sink=str(bait.folder), carrying=GO),
        lambda: api.resume(str(cp), sink=str(bait.folder), carrying=GO),
        lambda: api.compact(str(cp), carrying=GO),
        lambda: api.repair(str(cp), carrying=GO),
        lambda: api.rewind(str(cp), to_batch=1, carrying=GO),
        lambda: api.forget(str(cp), carrying=GO),
        lambda: api.copy(str(tmp_path / "other"), str(cp), carrying=GO),
    ):
        with pytest.raises(FloodmarkError) as refused:
            attempt()
        assert refused.value.status in (3, 4)
    assert bait.untouched()
    assert not leaked(cp)


@pytest.mark.parametrize("stage", [Stage.BEGUN, Stage.FINISHED, Stage.UNDOING])
def test_a_journal_changes_the_place_that_it_lies_in(
    stage: Stage, cp: Path, bait: Bait, tmp_path: Path
) -> None:
    steps = [WriteFile("thesis.txt", "x", text="evil", size=4), DeleteFile(".ssh/x", "x")]
    empty = (Precondition(EMPTY, "x"),)
    forge(cp, steps, stage, verb="convert", target=str(bait.folder), preconditions=empty)
    if stage is Stage.BEGUN:
        with pytest.raises(Refused, match="belongs to a change of"):
            api.resume(str(cp), carrying=GO)
    (cp / "thesis.txt").write_bytes(b"mine")
    try:
        change = api.undo(str(cp), carrying=GO)
        assert any("Only files in" in note for note in change.plan.notes)
    except FloodmarkError:
        assert stage is Stage.FINISHED  # it has moved since, by its fingerprint
    assert bait.untouched()


def test_no_verb_goes_on_with_anothers_journal(cp: Path) -> None:
    plan = forge(cp, [write("offsets/7", b"evil", "x")], verb="compact", options={"keep": None})
    blocked(cp, plan)
    for verb in (api.compact, api.repair):
        with pytest.raises(Unfinished) as refused:
            verb(str(cp), carrying=GO)
        assert f"floodmark apply --resume {cp} --execute" in refused.value.do
        assert f"floodmark undo {cp} --execute" in refused.value.do
    with pytest.raises(Unfinished):
        api.rewind(str(cp), to_batch=1, carrying=GO)
    assert not (cp / "offsets/7").exists()


def test_a_journal_is_resumed_where_the_user_says_so(cp: Path, capsys: Any) -> None:
    blocked(cp, forge(cp, [write("state/note", b"mine", "x")], verb="compact"))
    assert run(["apply", "--resume", str(cp)]) == 0
    assert "state/note" in capsys.readouterr().out
    assert not (cp / "state/note").exists()
    assert run(["apply", "--resume", str(cp), "--execute"]) == 0
    assert (cp / "state/note").read_bytes() == b"mine"
    with pytest.raises(NoAnswer, match="no change stopped midway"):
        api.resume(str(cp), carrying=GO)
    for words in (["apply"], ["apply", "x.json", "--resume", str(cp)]):
        assert run(words) == 2
    assert run(["apply", "x.json", "--from", str(cp)]) == 2


def test_a_journal_reads_and_changes_elsewhere_only_what_was_named(
    cp: Path, bait: Bait, tmp_path: Path
) -> None:
    copied = CopyFile("state/x", "x", origin="thesis.txt", size=len(SECRET))
    blocked(cp, forge(cp, [copied], verb="copy", origin=str(bait.folder)))
    with pytest.raises(Refused, match="reads from") as refused:
        api.resume(str(cp), carrying=GO)
    assert f"--from {bait.folder}" in refused.value.do
    with pytest.raises(Refused, match="but --from names"):
        api.resume(str(cp), origin=str(tmp_path), carrying=GO)
    assert not leaked(cp)
    shutil.rmtree(cp / "_floodmark")
    (cp / "offsets/99").unlink()
    trim = DeleteFile("_spark_metadata/4", "x", replaces=True, place=SINK)
    plan = forge(cp, [trim], sink=str(bait.folder))
    blocked(cp, plan)
    samples.write(cp, {f"{journal.kept_folder(plan)}/sink/_spark_metadata/4": b"evil"})
    for attempt in (api.resume, api.undo):
        with pytest.raises(Refused, match="changes the file sink's log"):
            attempt(str(cp), carrying=GO)
    assert bait.untouched()
    assert str(bait.folder) in (api.resume(str(cp), sink=str(bait.folder)).plan.sink or "")


def test_the_same_command_goes_on_only_with_its_own_plan(
    cp: Path, bait: Bait, tmp_path: Path
) -> None:
    """A journal of the same verb and options, and with other steps, is not this command's."""
    other = samples.write(tmp_path / "other", samples.sales(batches=4, partitions=1))
    wanted = api.copy(str(other), str(tmp_path / "new")).plan
    forged = seal(replace(wanted, steps=(write("offsets/7", b"evil", "x"),)))
    journal.write_record(open_files(str(tmp_path / "new")), Record(forged, Stage.BEGUN, 1))
    blocked(tmp_path / "new", forged)
    with pytest.raises(Unfinished):
        api.copy(str(other), str(tmp_path / "new"), carrying=GO)
    assert not (tmp_path / "new/offsets/7").exists()
    # A restore that takes another content of the repository than the snapshot has.
    api.backup(str(other), str(tmp_path / "repo"), carrying=GO)
    repo = open_files(str(tmp_path / "repo"))
    digest = hashlib.sha256(SECRET).hexdigest()
    repo.write(backup.object_path(digest), SECRET)
    snapshot = backup.snapshots(repo)[-1].id
    stolen = RestoreFile("state/x", "x", backup.object_path(digest), size=len(SECRET))
    origin, options = str(tmp_path / "repo"), {"snapshot": snapshot}
    blocked(cp, forge(cp, [stolen], verb="restore", origin=origin, options=options))
    with pytest.raises(Unfinished):
        api.restore(str(tmp_path / "repo"), str(cp), carrying=GO)
    assert not leaked(cp)


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../home/authorized_keys"},
        {"path": "/home/authorized_keys"},
        {"path": "a/../../home/x"},
        {"path": ""},
        {"path": "a\nb"},
        {"sha256": "../../home/thesis.txt"},
        {"size": "9"},
        {"mode": 0o4755},
    ],
    ids=str,
)
def test_a_handed_over_repository(
    change: dict[str, Any], cp: Path, bait: Bait, tmp_path: Path
) -> None:
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    repo = open_files(str(tmp_path / "repo"))
    snapshot = backup.snapshots(repo)[-1]
    evil = replace(snapshot.files[0], **change)
    backup.write_snapshot(repo, replace(snapshot, files=(*snapshot.files, evil)))
    for attempt in (
        lambda: api.restore(str(tmp_path / "repo"), str(tmp_path / "new"), carrying=GO),
        lambda: api.repair(str(cp), from_backup=str(tmp_path / "repo"), carrying=GO),
        lambda: api.check_backups(str(tmp_path / "repo")),
        lambda: api.backup(str(cp), str(tmp_path / "repo"), keep_last=1, carrying=GO),
    ):
        with pytest.raises(FloodmarkError) as refused:
            attempt()
        assert refused.value.status in (3, 4, 5)
    assert bait.untouched()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("said", [{"batch": "1"}, {"batch": -1}, {"query_id": 5}], ids=str)
def test_a_snapshot_that_says_odd_things(said: dict[str, Any], cp: Path, tmp_path: Path) -> None:
    api.backup(str(cp), str(tmp_path / "repo"), carrying=GO)
    repo = open_files(str(tmp_path / "repo"))
    snapshot = backup.snapshots(repo)[-1]
    backup.write_snapshot(repo, replace(snapshot, **said))
    with pytest.raises(MalformedFile, match="not a snapshot"):
        api.restore(str(tmp_path / "repo"), str(cp), carrying=PLAN)


def evil_plans(cp: Path, home: Path) -> dict[str, bytes]:
    location = str(cp)

    def made(verb: str, *steps: Any, **said: Any) -> Plan:
        unchanged = (Precondition(UNCHANGED, "x"),)
        fields = {"target": location, "block": 9, **said}
        return seal(
            Plan(verb, "t", location, fields["target"], steps, unchanged, "", "x", fields["block"])
        )

    def edited(**fields: Any) -> bytes:
        value = {**plan_to_json(made("repair")), **fields}
        value["digest"] = digest_of(value)
        return json.dumps(value).encode()

    found = {
        "out": render_plan(made("repair", write("../home/.bashrc", b"evil", "x"))),
        "deletes-out": render_plan(made("repair", DeleteFile("../home/thesis.txt", "x"))),
        "reads-out": render_plan(
            made("copy", CopyFile("x", "x", origin="../home/thesis.txt"), target=f"{cp}-new")
        ),
        "backup": render_plan(made("backup", target=f"{cp}-repo")),
        "undo": render_plan(made("undo")),
        "snapshot": render_plan(made("repair", TakeSnapshot(str(home), "x"))),
        "block": render_plan(made("repair", block="../../home/x")),
        "sink": render_plan(made("repair", DeleteFile("_spark_metadata/1", "x", place=SINK))),
        "deep": b"[" * 200_000,
        "surrogate": edited(title="a").replace(b'"a"', b'"\\ud800"'),
    }
    odd: dict[str, Any] = {"steps": 5, "options": [1], "origin": 5, "verb": "rm", "sink": 7}
    odd |= {"notes": [1], "preconditions": [{"name": 1, "words": 2}], "block": -1, "extra": 1}
    odd |= {"consequences": [["x"]]}
    found |= {name: edited(**{name: value}) for name, value in odd.items()}
    nested: list[Any] = []
    for _ in range(300):
        nested = [nested]
    found["nested"] = edited(options={"sink": nested})
    found["accepts a number"] = edited(options={"needs_accepted": ["skips"], "accept": 5})
    found["needs a number"] = edited(options={"needs_accepted": 5})
    found["a step that is text"] = edited(steps=["x"])
    for at, how in enumerate([5, [1], {}, {"parts": 5}, {"parts": [1]}, {"parts": {"a": None}}]):
        rewriting = {"do": "rewrite-state", "path": "state/0", "why": "x", "how": how}
        found[f"how-{at}"] = edited(steps=[rewriting])
    found["step"] = edited(steps=[{"do": "chmod", "path": "a", "why": "x"}])
    found["base64"] = edited(steps=[{"do": "write", "path": "a", "why": "x", "base64": "!"}])
    return found


@pytest.mark.parametrize("name", evil_plans(Path("cp"), Path("home")))
def test_a_handed_over_plan(name: str, cp: Path, bait: Bait, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(evil_plans(cp, bait.folder)[name])
    before = {path: path.lstat().st_mtime_ns for path in cp.rglob("*")}
    assert run(["apply", str(tmp_path / "plan.json")]) in (1, 3, 4)
    assert bait.untouched()
    assert {path: path.lstat().st_mtime_ns for path in cp.rglob("*")} == before


def test_a_saved_plan_changes_a_sink_only_where_it_is_named(cp: Path, tmp_path: Path) -> None:
    log = {f"_spark_metadata/{number}": b"v1" for number in range(4)}
    out = samples.write(tmp_path / "out", log)
    plan = tmp_path / "plan.json"
    save_plan(api.rewind(str(cp), to_batch=1, sink=str(out)).plan, str(plan))
    assert run(["apply", str(plan)]) == 4
    assert len(list((out / "_spark_metadata").iterdir())) == 4
    api.apply(str(plan), sink=str(out), carrying=GO)
    assert len(list((out / "_spark_metadata").iterdir())) == 2


def test_places_outside_stand_first_in_a_plan(
    cp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = {f"_spark_metadata/{number}": b"v1" for number in range(4)}
    out = samples.write(tmp_path / "out", log)
    assert run(["rewind", str(cp), "--to-batch", "1", "--sink", str(out)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert str(out) in lines[1]


def noted(cp: Path, sink: Path, kind: str = "parquet") -> None:
    note = {"floodmark": "start-note", "query_id": samples.QUERY_ID, "sink": kind}
    samples.write(
        cp,
        {
            "_floodmark/starts/1.json": json.dumps(
                {**note, "sink_options": {"path": str(sink)}}
            ).encode()
        },
    )


def test_a_forged_note_of_a_sink(cp: Path, bait: Bait, tmp_path: Path) -> None:
    """Each verb says that the notes name it, and touches nothing there."""
    noted(cp, bait.folder)
    move = [f"{bait.folder}={tmp_path / 'elsewhere'}", f"{tmp_path}/x={bait.folder}"]
    changes = [
        api.rewind(str(cp), to_batch=1, accept=["skips"], carrying=GO),
        api.compact(str(cp), keep=1, carrying=GO),
    ]
    for change in changes:
        assert change.plan.sink is None
        assert any(str(bait.folder) in note for note in change.plan.notes)
    with pytest.raises(FloodmarkError):
        api.copy(str(cp), str(tmp_path / "new"), rehome=move, carrying=GO)
    (cp / "commits/1").write_bytes(b"torn")
    api.repair(str(cp), accept=("repeats", "changed-files"), carrying=GO)
    assert bait.untouched()


@pytest.mark.timeout(60)
def test_links_in_a_checkpoint(cp: Path, bait: Bait, tmp_path: Path) -> None:
    (cp / "_floodmark").mkdir()
    (cp / "_floodmark/kept").symlink_to(bait.folder)
    for attempt in (PLAN, GO):
        with pytest.raises(Refused, match="kept: a link"):
            api.forget(str(cp), carrying=attempt)
    (cp / "_floodmark/kept").unlink()
    (cp / "_floodmark/journal").symlink_to(bait.folder)
    with pytest.raises(UnsafePath, match="journal is a link"):
        api.undo(str(cp), carrying=GO)
    (cp / "_floodmark/journal").unlink()
    (cp / "state/notes").symlink_to(bait.folder / ".ssh/authorized_keys")
    attempts: list[Callable[[], object]] = [
        lambda: api.copy(str(cp), str(tmp_path / "new"), carrying=GO),
        lambda: api.backup(str(cp), str(tmp_path / "repo"), carrying=GO),
        lambda: api.upgrade(str(cp), str(tmp_path / "new"), carrying=GO),
        lambda: api.rewind(str(cp), to_batch=1, carrying=GO),
        lambda: api.repair(str(cp), carrying=GO),
        lambda: api.compact(str(cp), keep=1, carrying=GO),
    ]
    for attempt_one in attempts:
        with pytest.raises(Refused, match="state/notes: a link"):
            attempt_one()
    (cp / "state/notes").unlink()
    shutil.move(cp / "state/0/0", bait.folder.parent / "moved")
    (cp / "state/0/0").symlink_to(bait.folder.parent / "moved")
    there = sorted(path.name for path in (bait.folder.parent / "moved").iterdir())
    with pytest.raises(Refused, match="state/0/0: a link"):
        api.compact(str(cp), keep=1, carrying=GO)
    assert sorted(path.name for path in (bait.folder.parent / "moved").iterdir()) == there
    assert bait.untouched()
    assert not leaked(cp, *(path for path in (tmp_path / "new", tmp_path / "repo")))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", ["pipe", "device", "link"])
@pytest.mark.parametrize("entry", ["commits/2", "offsets/2", "metadata", "state/0/0/2.delta"])
def test_an_entry_that_is_no_file(
    entry: str, what: str, cp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cp / entry).unlink()
    if what == "pipe":
        os.mkfifo(cp / entry)
    else:
        (cp / entry).symlink_to("/dev/zero" if what == "device" else "nowhere")
    assert run(["inspect", str(cp), "--json"]) in (0, 3)
    found = json.loads(capsys.readouterr().out)
    assert entry in [item["path"] for item in found["unreadable"]]
    for verb in ("batches", "doctor", "state", "offsets", "files", "scan"):
        assert run([verb, str(cp)]) in (0, 1, 3)
    for words in (["rewind", "--to-batch", "1"], ["compact"], ["repair"]):
        assert run([words[0], str(cp), *words[1:], "--execute"]) in (3, 4)


def modes(place: Path) -> set[int]:
    return {stat.S_IMODE(path.lstat().st_mode) for path in [place, *place.rglob("*")]}


@pytest.fixture
def private(tmp_path: Path) -> Path:
    cp = tmp_path / "private"
    shutil.copytree(GOLDEN, cp)
    for path in [cp, *cp.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return cp


def test_a_private_checkpoint_stays_private(private: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    at = {name: tmp_path / name for name in ("copy", "up", "repo", "again", "conv", "rep")}
    api.copy(str(private), str(at["copy"]), carrying=GO)
    api.upgrade(str(private), str(at["up"]), new_identity=True, carrying=GO)
    api.backup(str(private), str(at["repo"]), carrying=GO)
    api.restore(str(at["repo"]), str(at["again"]), carrying=GO)
    api.convert(str(private), str(at["conv"]), provider="rocksdb", carrying=GO)
    api.repartition(str(private), str(at["rep"]), partitions=3, carrying=GO)
    plan = api.rewind(str(at["copy"]), to_batch=1, accept=["out-of-reach"]).plan
    save_plan(plan, str(tmp_path / "plan.json"))
    assert run(["state", str(at["up"]), "--export", str(tmp_path / "state.parquet")]) == 0
    api.rewind(str(private), to_batch=1, accept=["out-of-reach"], carrying=GO)
    for place in (private, *at.values()):
        assert modes(place) <= {0o600, 0o700}, place
    for name in ("plan.json", "state.parquet"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o644), (0o750, 0o640), (0o755, 0o600)])
def test_others_read_a_copy_who_could_read_the_original(
    folder: int, file: int, private: Path, tmp_path: Path
) -> None:
    for path in [private, *private.rglob("*")]:
        path.chmod(folder if path.is_dir() else file)
    api.backup(str(private), str(tmp_path / "repo"), carrying=GO)
    api.restore(str(tmp_path / "repo"), str(tmp_path / "again"), carrying=GO)
    api.upgrade(str(private), str(tmp_path / "up"), new_identity=True, carrying=GO)
    api.rewind(str(private), to_batch=1, accept=["out-of-reach"], carrying=GO)
    assert modes(tmp_path / "repo") == {0o600, 0o700}
    for name in ("again", "up", "private"):
        own = tmp_path / name / "_floodmark"
        outside = [
            path for path in (tmp_path / name).rglob("*") if own not in (path, *path.parents)
        ]
        assert {stat.S_IMODE(path.stat().st_mode) for path in outside} == {folder, file}, name
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
        notes = {stat.S_IMODE(path.stat().st_mode) for path in (own / "journal").iterdir()}
        assert notes == {0o600}


def test_progress_is_not_appended_through_a_link(cp: Path, bait: Bait) -> None:
    from floodmark.engine.run.progress import ProgressFile

    place, path = LocalFiles(str(cp), str(cp)), Path("_floodmark/progress.jsonl")
    said: list[str] = []
    ProgressFile(path, said.append, place).close()
    assert not said
    assert stat.S_IMODE((cp / path).stat().st_mode) == 0o600
    (cp / path).unlink()
    (cp / path).symlink_to(bait.folder / "thesis.txt")
    ProgressFile(path, said.append, place).close()
    shutil.rmtree(cp / "_floodmark")
    (cp / "_floodmark").symlink_to(bait.folder)
    ProgressFile(path, said.append, place).close()
    assert len(said) == 2
    assert all("is a link" in words for words in said)
    assert bait.untouched()


def test_progress_is_not_appended_to_a_file_that_has_another_name(cp: Path, bait: Bait) -> None:
    from floodmark.engine.run.progress import ProgressFile

    path = Path("_floodmark/progress.jsonl")
    (cp / path).parent.mkdir(exist_ok=True)
    os.link(bait.folder / "thesis.txt", cp / path)
    files = LocalFiles(str(cp), str(cp))
    descriptor = files.append_to(RelativePath(str(path)))
    os.write(descriptor, b"{}\n")
    os.close(descriptor)
    said: list[str] = []
    ProgressFile(path, said.append, files).close()
    assert not said
    assert (cp / path).read_bytes() == b"{}\n"
    assert bait.untouched()


def test_an_odd_journal_is_said_to_be_one(cp: Path) -> None:
    for content in (b"[" * 100_000, b"{}", b'{"plan": 5}', b"\xff"):
        samples.write(cp, {"_floodmark/journal/x.json": content})
        with pytest.raises((MalformedFile, EditedPlan)):
            api.undo(str(cp), carrying=GO)


@pytest.mark.parametrize("field", ["origin", "target"])
def test_a_plan_of_a_relative_place_is_refused(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be another place in every folder that the command is given in."""
    folder, new = samples.write(tmp_path / "cp", samples.sales(4)), tmp_path / "new"
    change = api.copy(folder, new, carrying=PLAN)
    value = {**plan_to_json(change.plan), field: "10000000"}
    value["digest"] = digest_of(value)
    (tmp_path / "plan.json").write_text(json.dumps(value))
    monkeypatch.chdir(tmp_path)
    assert run(["apply", "plan.json"]) == 4
    assert not (tmp_path / "10000000").exists()


@pytest.mark.parametrize("content", [b"5", b"[]", b'"x"', b"null", b"[" * 100_000])
def test_a_snapshot_list_that_is_none(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, repo = samples.write(tmp_path / "cp", samples.sales(4)), tmp_path / "repo"
    api.backup(folder, repo, carrying=GO)
    (snapshot,) = (repo / "snapshots").glob("*.json")
    snapshot.write_bytes(content)
    for command in (["--list", repo], ["--check", repo]):
        assert run(["backup", *map(str, command)]) == 3
        assert "not a snapshot" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"5", b"null", b'{"a":' * 50_000, b"\xff", b'{"version": []}'])
def test_a_repository_that_says_odd_things_of_itself(
    content: bytes, cp: Path, tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    api.backup(str(cp), str(repo), carrying=GO)
    (repo / "floodmark-backup.json").write_bytes(content)
    for attempt in (
        lambda: api.restore(str(repo), str(tmp_path / "new"), carrying=GO),
        lambda: api.repair(str(cp), from_backup=str(repo), carrying=GO),
        lambda: api.backup(str(cp), str(repo), carrying=GO),
        lambda: api.check_backups(str(repo)),
    ):
        with pytest.raises(MalformedFile):
            attempt()
