"""Plans that are saved, stale, edited or repeated; and checkpoints that are in use."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.in_use import Clock, user_of
from floodmark.changes.plan import render_plan
from floodmark.changes.plan.parsing import parse_plan
from floodmark.changes.plan.saved import save_plan
from floodmark.cli.main import run
from floodmark.errors import (
    CannotWrite,
    EditedPlan,
    InUse,
    MalformedFile,
    NoAnswer,
    StalePlan,
    StoppedMidway,
    Unfinished,
)
from floodmark.storage.files import open_files
from floodmark.storage.machine.process import boot_id, pid_namespace, this_process


@pytest.fixture
def cp(tmp_path: Path) -> Path:
    return samples.write(tmp_path / "cp", samples.sales(batches=5))


@pytest.fixture
def saved(cp: Path, tmp_path: Path) -> Path:
    plan = api.rewind(str(cp), to_batch=1).plan
    save_plan(plan, str(tmp_path / "plan.json"))
    return tmp_path / "plan.json"


def test_a_saved_plan_is_the_same_plan(saved: Path) -> None:
    plan = parse_plan(saved.read_bytes())
    assert render_plan(plan) == saved.read_bytes()
    assert plan.id == plan.digest[:16]


def test_a_saved_plan_is_carried_out_once(cp: Path, saved: Path) -> None:
    assert api.apply(str(saved), carrying=GO).executed
    assert api.inspect(str(cp)).committed_batch == 1
    assert "already" in api.apply(str(saved), carrying=GO).words


def test_a_stale_plan(cp: Path, saved: Path) -> None:
    samples.write(cp, {"commits/4": samples.commit_entry()})
    before = fingerprint(open_files(str(cp)))
    with pytest.raises(StalePlan) as caught:
        api.apply(str(saved), carrying=GO)
    assert "planned at   batch 3 committed, batch 4 planned" in caught.value.why
    assert "found now    batch 4 committed" in caught.value.why
    assert caught.value.status == 4
    assert fingerprint(open_files(str(cp))) == before
    assert not (cp / "_floodmark").exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda plan: plan["steps"].pop(), EditedPlan),
        (lambda plan: plan.update(target="/elsewhere"), EditedPlan),
        (lambda plan: plan.update(made_by="99.0"), EditedPlan),
        (lambda plan: plan.update(floodmark="start"), MalformedFile),
    ],
)
def test_a_plan_that_is_not_as_it_was_made(
    saved: Path, cp: Path, change: Any, error: type[Exception]
) -> None:
    plan = json.loads(saved.read_text())
    change(plan)
    saved.write_text(json.dumps(plan))
    with pytest.raises(error):
        api.apply(str(saved), carrying=GO)
    assert not (cp / "_floodmark").exists()


def test_no_plan_at_all(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(MalformedFile):
        api.apply(str(tmp_path / "plan.json"), carrying=GO)
    assert run(["apply", str(tmp_path / "none.json")]) == 2


class Moving:
    """A query that writes while it is watched."""

    def __init__(self, cp: Path) -> None:
        self.cp = cp

    def __call__(self, seconds: float) -> None:
        samples.write(self.cp, {"offsets/5": samples.offset_entry(5, samples.kafka_offset(5))})


def test_a_log_that_moves_is_in_use(cp: Path, saved: Path) -> None:
    with pytest.raises(InUse, match="changed while it was watched"):
        api.apply(str(saved), carrying=Carrying(True, clock=Clock(pause=Moving(cp))))


def test_files_that_are_old_are_not_watched(cp: Path) -> None:
    for path in cp.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def never(seconds: float) -> None:
        raise AssertionError("it waited")

    assert user_of(open_files(str(cp)), Clock(pause=never)) is None


def lease(**said: object) -> bytes:
    value = {
        "floodmark": "lease",
        "version": 1,
        "run": "r",
        "pipeline": "sales",
        "host": socket.gethostname(),
        "processes": [asdict(this_process())],
        "boot": boot_id(),
        "namespace": pid_namespace(),
        "beat": 1,
        "beat_ms": Clock().now_ms(),
    }
    return json.dumps({**value, **said}).encode()


def test_a_lease_of_a_process_that_runs(cp: Path, saved: Path) -> None:
    samples.write(cp, {"_floodmark/lease.json": lease()})
    with pytest.raises(InUse, match="pipeline sales on host"):
        api.apply(str(saved), carrying=GO)


def test_a_lease_that_was_left_behind(cp: Path, saved: Path) -> None:
    gone = {"processes": [{"pid": 2**22 + 1, "started": 5}]}
    samples.write(cp, {"_floodmark/lease.json": lease(**gone)})
    assert api.apply(str(saved), carrying=GO).executed


def test_a_lease_of_another_host_that_beats_on(cp: Path) -> None:
    samples.write(cp, {"_floodmark/lease.json": lease(host="elsewhere", boot="another")})

    def beat(seconds: float) -> None:
        samples.write(
            cp, {"_floodmark/lease.json": lease(host="elsewhere", boot="another", beat=2)}
        )

    assert user_of(open_files(str(cp)), Clock(pause=beat)) is not None


def test_waiting_for_a_query_to_stop(cp: Path, saved: Path) -> None:
    samples.write(cp, {"_floodmark/lease.json": lease()})

    def stop(seconds: float) -> None:
        (cp / "_floodmark/lease.json").unlink(missing_ok=True)

    done = api.apply(str(saved), carrying=Carrying(True, 60, clock=Clock(pause=stop)))
    assert done.executed


def test_a_query_that_planned_on_is_fenced_off(cp: Path, saved: Path) -> None:
    """The blocking entry takes the number that a running query would plan next."""
    plan = parse_plan(saved.read_bytes())
    assert plan.block == 5


def test_undo_is_refused_after_the_stream_went_on(cp: Path) -> None:
    api.rewind(str(cp), to_batch=1, carrying=GO)
    samples.write(cp, {"offsets/2": samples.offset_entry(2, samples.kafka_offset(9))})
    with pytest.raises(StalePlan, match="has moved since"):
        api.undo(str(cp), carrying=GO)


def test_undo_twice_takes_back_two_changes(cp: Path) -> None:
    before = fingerprint(open_files(str(cp)))
    api.rewind(str(cp), to_batch=2, carrying=GO)
    api.rewind(str(cp), to_batch=0, carrying=GO)
    api.undo(str(cp), carrying=GO)
    assert api.inspect(str(cp)).committed_batch == 2
    api.undo(str(cp), carrying=GO)
    assert fingerprint(open_files(str(cp))) == before
    with pytest.raises(NoAnswer):
        api.undo(str(cp), carrying=GO)


def test_forget_removes_what_was_kept(cp: Path) -> None:
    api.rewind(str(cp), to_batch=2, carrying=GO)
    kept = list((cp / "_floodmark/kept").rglob("offsets/4"))
    assert kept
    api.forget(str(cp))
    assert kept[0].exists()  # only a plan
    api.forget(str(cp), carrying=GO)
    assert not kept[0].exists()
    with pytest.raises(NoAnswer):
        api.undo(str(cp), carrying=GO)


FULL = OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("error", "words"), [(FULL, "No space left"), (KeyboardInterrupt(), "it was interrupted")]
)
def test_an_unfinished_change_blocks_others(
    error: BaseException, words: str, cp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("floodmark.changes.execute._do", full)
        with pytest.raises(StoppedMidway, match=words) as caught:
            api.rewind(str(cp), to_batch=1, carrying=GO)
    assert caught.value.status == 5
    assert "floodmark undo" in caught.value.do
    assert api.inspect(str(cp)).restart is not None
    assert "does not start" in api.inspect(str(cp)).restart.words  # type: ignore[union-attr]
    with pytest.raises(Unfinished):
        api.rewind(str(cp), to_batch=2, carrying=GO)
    with pytest.raises(Unfinished):
        api.upgrade(str(cp), str(cp) + "-new", carrying=GO)
    assert api.rewind(str(cp), to_batch=1, carrying=GO).executed


def test_a_place_that_cannot_be_written_to(cp: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CannotWrite):
        api.upgrade(str(cp), str(tmp_path / "file" / "new"), carrying=GO)


def test_exit_statuses(cp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in cp.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    new = str(tmp_path / "new")
    assert run(["upgrade", str(cp), new, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["executed"] is False
    assert {"verb", "steps", "preconditions", "fingerprint"} <= document["plan"].keys()
    assert {"do", "path", "why"} <= document["plan"]["steps"][0].keys()
    assert run(["upgrade", str(cp), new, "--out", str(tmp_path / "p.json")]) == 0
    assert run(["apply", str(tmp_path / "p.json")]) == 0
    assert run(["upgrade", str(cp), str(cp)]) == 2
    assert run(["upgrade", str(cp), str(tmp_path)]) == 2
    assert run(["rewind", str(cp), "--to-batch", "77"]) == 2
    assert run(["upgrade", str(tmp_path / "nothing"), str(tmp_path / "x")]) == 3
    samples.write(tmp_path / "full", {"a": b""})
    assert run(["copy", str(cp), str(tmp_path / "full")]) == 4
    assert run(["undo", str(cp)]) == 1
    assert "Traceback" not in capsys.readouterr().err
