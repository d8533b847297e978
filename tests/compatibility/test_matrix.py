"""Rules and rehearsal over the matrix of changes: where they differ, the rules have a bug."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from compatibility.changes import ALL, Change
from compatibility.laboratory import Laboratory, Outcome
from floodmark.rules.restarts.reason import Judgement

pytestmark = pytest.mark.spark
# As many as fit in four minutes beside everything else; the whole matrix is `make soak`.
_QUICK = 16


def _quick() -> list[Change]:
    """The same ones each time, and of every verdict and answer one at least."""
    kinds: dict[tuple[str, bool], list[Change]] = {}
    for change in ALL:
        kinds.setdefault((change.verdict, change.starts), []).append(change)
    generator = random.Random(7)
    chosen = [generator.choice(changes) for changes in kinds.values()]
    rest = [change for change in ALL if change not in chosen]
    return chosen + generator.sample(rest, max(0, _QUICK - len(chosen)))


@pytest.fixture(scope="module")
def laboratory(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(spark, tmp_path_factory.mktemp("changes"))


def _told(judgement: Judgement) -> tuple[str, list[tuple[str, str]]]:
    return judgement.verdict.value, [(one.rule, one.verdict.value) for one in judgement.reasons]


def _differences(change: Change, outcome: Outcome) -> list[str]:
    judgement, rehearsal = outcome.judgement, outcome.rehearsal
    said = {one.rule for one in judgement.reasons}
    found = []
    if not outcome.agrees:
        found.append(f"rules and Spark differ ({'it ran' if rehearsal.ran else rehearsal.words})")
    if rehearsal.ran is not change.starts:
        found.append(f"Spark {'ran it' if rehearsal.ran else 'said: ' + rehearsal.words}")
    if judgement.verdict.value != change.verdict:
        found.append(f"the verdict is {judgement.verdict.value}, not {change.verdict}")
    # How far the sink is at this moment does not stand in an outline.
    if change.spoil != "sink-ahead" and _told(outcome.outlined) != _told(judgement):
        found.append(f"by the outline: {_told(outcome.outlined)}")
    # Its sources are empty ones: what is wrong with the real ones, the rules alone say.
    about_sources = {
        *("sources-reordered", "source-place-changed"),
        *("source-kind-changed", "source-names-unknown"),
    }
    ran = rehearsal.ran or bool(about_sources & change.rules)
    if outcome.skeleton is not None and outcome.skeleton.ran is not ran:
        found.append(f"on the skeleton: {outcome.skeleton.words or 'it ran'}")
    if not change.rules <= said:
        found.append(f"no word of {', '.join(sorted(change.rules - said))}")
    if found:
        found.append(f"said: {', '.join(sorted(said))}")
    return found


def _run(laboratory: Laboratory, changes: list[Change], skeletons: bool = False) -> None:
    differing: dict[str, list[str]] = {}
    agreed = 0
    for change in changes:
        outcome = laboratory.judge(change, skeletons)
        agreed += outcome.agrees
        differences = _differences(change, outcome)
        print(f"{change.name}: {outcome.judgement.verdict.value}", *differences, sep=" | ")
        if differences:
            differing[change.name] = differences
    print(f"\nrules and rehearsal agree on {agreed} of {len(changes)} changes")
    assert differing == {}


@pytest.mark.timeout(1200)
def test_a_selection_of_the_matrix(laboratory: Laboratory) -> None:
    _run(laboratory, _quick())


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_whole_matrix(laboratory: Laboratory) -> None:
    _run(laboratory, ALL, skeletons=True)


def test_the_matrix_is_as_large_as_promised() -> None:
    assert len(ALL) >= 60
    assert len({change.name for change in ALL}) == len(ALL)


def test_checkpoints_of_an_input_are_left_as_they_were(laboratory: Laboratory) -> None:
    folder, _ = laboratory.old("stateless")
    files = sorted(path.name for path in Path(folder / "events").glob("*.json"))
    assert files == ["1.json", "2.json", "3.json"]
