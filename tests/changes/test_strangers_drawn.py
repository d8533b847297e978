"""Hostile checkpoints as hypothesis draws them: names, links, journals, notes, repositories, plans.

Every changing verb plans and executes on each of them. A bait folder lies beside: it stays as it
is, and nothing of it gets into any other place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from test_strangers import GO, PLAN, Bait, leaked, noted

import samples
from floodmark import api
from floodmark.changes import journal
from floodmark.changes.apply import Carrying
from floodmark.changes.fingerprint import BLOCK
from floodmark.changes.plan import EMPTY, UNCHANGED, Plan, Precondition, plan_to_json, seal
from floodmark.changes.plan.steps import OPERATIONS, SINK, TARGET, Step
from floodmark.errors import FloodmarkError
from floodmark.storage import repository as backup
from floodmark.storage.files import open_files

TREE = samples.sales(batches=4, partitions=1)
VERBS = ("copy", "rewind", "restore", "compact", "repair", "upgrade", "convert", "undo")

# {home} is the bait, absolute; the rest of a path is drawn from what leads out, and in.
PARTS = ["..", ".", "", "home", "thesis.txt", ".ssh", "authorized_keys", "_spark_metadata", "4"]
PARTS += ["offsets", "commits", "state", "_floodmark", "kept", "journal", "metadata", "5"]
PARTS += ["link", "a\\b", "a\nb", "\x1b[2J", "C:", "~", "%2e%2e", "..\\home", "\ud800"]
paths = st.one_of(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("/".join),
    st.sampled_from(["{home}/thesis.txt", "/{home}/new", "file://{home}/new", "../home/new"]),
    st.sampled_from(["offsets/9", "state/link/thesis.txt", "link/new", "_spark_metadata/4"]),
)
inside = st.sampled_from(["offsets/9", "metadata", "state/0/0/2.delta", "commits/1", "x/y"])
places = st.sampled_from([*["{cp}"] * 4, "{home}", "{cp}/../home", "file://{home}", "{root}"])


@dataclass(frozen=True)
class Link:
    """Something that is no file, in place of whatever is at a path."""

    at: str
    to: str | None
    """Where the link leads; None: a named pipe."""


@dataclass(frozen=True)
class Stranger:
    links: list[Link]
    plan: dict[str, Any] | None
    stage: str
    blocked: bool
    kept: list[str]
    noted: str | None
    stored: str | None


links = st.builds(
    Link,
    st.sampled_from(
        [
            *("offsets", "commits", "state", "sources", "metadata", "_floodmark", "link"),
            *("state/0", "state/0/0", "state/0/0/2.delta", "state/link", "offsets/2", "commits/1"),
            *("_floodmark/kept", "_floodmark/journal", "_floodmark/starts", "sources/0/0"),
            *("_floodmark/lease.json", "_floodmark/kept/x", "offsets/link", "offsets/4"),
        ]
    ),
    st.sampled_from(
        [
            *("{home}", "{home}/thesis.txt", "{home}/.ssh", "{home}/_spark_metadata", None),
            *("../home", "../../home", "..", "{root}", "{home}/missing", "../home/.ssh"),
        ]
    ),
)
steps = st.fixed_dictionaries(
    {
        "do": st.sampled_from(["write", "write", "copy", "delete", "delete", "restore"]),
        "path": st.one_of(paths, inside),
        "why": st.just("x"),
        "origin": st.one_of(st.none(), inside, paths, st.just("objects/aa/../../../home/x")),
        "text": st.just("evil"),
        "size": st.just(4),
        "replaces": st.booleans(),
        "place": st.sampled_from([TARGET, TARGET, SINK]),
    }
) | st.fixed_dictionaries(
    {"do": st.just("rewrite-state"), "path": paths, "why": st.just("x"), "how": st.just({})}
)


def made_step(drawn: dict[str, Any]) -> Step:
    kind = OPERATIONS[drawn["do"]]
    names = {one.name for one in dataclasses.fields(kind)} & drawn.keys()
    return kind(**{name: drawn[name] for name in names})


plans = st.fixed_dictionaries(
    {
        "verb": st.sampled_from(VERBS),
        "origin": places,
        "target": places,
        "steps": st.lists(steps, max_size=3),
        "sink": st.none() | st.sampled_from(["{home}", "{root}", "{cp}"]),
        "in_place": st.booleans(),
    }
)
strangers = st.builds(
    Stranger,
    st.just([]) | st.lists(links, max_size=2),
    plans | st.none(),
    st.sampled_from([stage.value for stage in journal.Stage]),
    st.booleans(),
    st.lists(paths, max_size=2),
    st.none() | places,
    st.none() | paths,
)


class World:
    """A checkpoint, a repository and a bait, side by side."""

    def __init__(self, root: Path, stranger: Stranger) -> None:
        self.root, self.cp, self.repo = root, root / "cp", root / "repo"
        samples.write(self.cp, TREE)
        api.backup(str(self.cp), str(self.repo), carrying=GO)
        self.bait = Bait(root / "home")
        if stranger.noted is not None:
            noted(self.cp, Path(self._said(stranger.noted)))
        if stranger.stored is not None:
            repository = open_files(str(self.repo))
            snapshot = backup.snapshots(repository)[-1]
            evil = replace(snapshot.files[0], path=self._said(stranger.stored))
            backup.write_snapshot(repository, replace(snapshot, files=(*snapshot.files, evil)))
        self.plan = self._plan(stranger.plan) if stranger.plan is not None else None
        if self.plan is not None:
            self._journal(self.plan, stranger)
        for link in stranger.links:
            self._link(link)

    def _said(self, text: str) -> str:
        for name, place in (("home", self.root / "home"), ("cp", self.cp), ("root", self.root)):
            text = text.replace("{" + name + "}", str(place))
        return text

    def _plan(self, drawn: dict[str, Any]) -> Plan:
        made = [
            {
                key: self._said(value) if isinstance(value, str) else value
                for key, value in step.items()
            }
            for step in drawn["steps"]
        ]
        condition = Precondition(UNCHANGED if drawn["in_place"] else EMPTY, "x")
        places = [self._said(drawn["origin"]), self._said(drawn["target"])]
        plan = Plan(
            drawn["verb"],
            "t",
            *places,
            tuple(map(made_step, made)),
            (condition,),
            "",
            "x",
            99,
            sink=None if drawn["sink"] is None else self._said(drawn["sink"]),
        )
        return seal(plan)

    def _journal(self, plan: Plan, stranger: Stranger) -> None:
        content = {"stage": stranger.stage, "number": 1, "after": "", "plan": plan_to_json(plan)}
        tree = {journal.path_of(plan): json.dumps(content).encode()}
        if stranger.blocked:
            tree["offsets/99"] = BLOCK + f"({plan.id})".encode()
        for path in stranger.kept:
            for place in (TARGET, SINK):
                kept = f"{journal.kept_folder(plan)}/{place}/{self._said(path)}"
                if ".." not in kept.split("/"):
                    tree[kept] = b"evil"
        for path, data in tree.items():
            with contextlib.suppress(OSError, ValueError):
                samples.write(self.cp, {path: data})

    def _link(self, link: Link) -> None:
        path = self.cp / link.at
        if any(parent.is_symlink() for parent in path.parents):
            return  # another link lies there: this test must not follow it
        with contextlib.suppress(OSError):
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.is_dir():
                shutil.rmtree(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            if link.to is None:
                os.mkfifo(path)
            else:
                path.symlink_to(self._said(link.to))

    def attempts(self) -> dict[str, Callable[[Carrying], object]]:
        cp, repo, new = str(self.cp), str(self.repo), str(self.root / "new")
        file = self.root / "plan.json"
        if self.plan is not None:
            file.write_text(json.dumps(plan_to_json(self.plan)))
        return {
            "resume": lambda how: api.resume(cp, carrying=how),
            "undo": lambda how: api.undo(cp, carrying=how),
            "forget": lambda how: api.forget(cp, carrying=how),
            "apply": lambda how: api.apply(str(file), carrying=how),
            "compact": lambda how: api.compact(cp, keep=1, carrying=how),
            "repair": lambda how: api.repair(cp, accept=("repeats",), carrying=how),
            "rewind": lambda how: api.rewind(cp, to_batch=1, accept=["skips"], carrying=how),
            "copy": lambda how: api.copy(cp, new, carrying=how),
            "upgrade": lambda how: api.upgrade(cp, new + "-up", carrying=how),
            "backup": lambda how: api.backup(cp, repo, keep_last=1, carrying=how),
            "restore": lambda how: api.restore(repo, new + "-again", carrying=how),
            "restore-over": lambda how: api.restore(repo, cp, carrying=how),
        }


def nobody_is_let_in(stranger: Stranger) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="floodmark-strangers-") as place,
        # Power is not cut here: waiting for the disk would be most of the time.
        mock.patch("os.fsync", return_value=None),
    ):
        world = World(Path(place), stranger)
        for name, attempt in world.attempts().items():
            for how in (PLAN, GO):
                if name == "apply" and (how is PLAN or world.plan is None or aims_at_bait(world)):
                    continue
                try:
                    attempt(how)
                    event(f"{name} done")
                except FloodmarkError:
                    event(f"{name} refused")
                assert world.bait.untouched(), (name, stranger)
        places = [path for path in world.root.iterdir() if path != world.bait.folder]
        assert not leaked(*(path for path in places if path.is_dir())), stranger


def aims_at_bait(world: World) -> bool:
    """A saved plan names its target, and `apply` is told to carry it out there."""
    assert world.plan is not None
    inside = os.path.realpath(world.cp)
    named = (world.plan.target, world.plan.origin)
    return any(os.path.realpath(one.removeprefix("file://")) != inside for one in named)


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
PHASES = [Phase.explicit, Phase.generate, Phase.shrink]


@pytest.mark.timeout(300)
@settings(max_examples=60, suppress_health_check=SLOW, derandomize=True, phases=PHASES)
@given(strangers)
def test_nobody_is_let_in(stranger: Stranger) -> None:
    nobody_is_let_in(stranger)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@settings(max_examples=5_000, suppress_health_check=SLOW, phases=PHASES)
@given(strangers)
def test_nobody_is_let_in_thousands_of_times(stranger: Stranger) -> None:
    nobody_is_let_in(stranger)
