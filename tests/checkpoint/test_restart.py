from __future__ import annotations

import pytest

import samples
from floodmark.checkpoint.restart import Action, restart


@pytest.mark.parametrize(
    ("planned", "committed", "action", "batch", "words"),
    [
        pytest.param([], [], Action.BEGIN, 0, "begins with batch 0", id="no O"),
        pytest.param([0, 1], [0, 1], Action.CONTINUE, 2, "goes on with batch 2", id="O == C"),
        pytest.param([0], [0], Action.CONTINUE, 1, "goes on with batch 1", id="O == C == 0"),
        pytest.param(
            [4, 5],
            [3, 4],
            Action.RERUN,
            5,
            "runs batch 5 again over the same offsets",
            id="C == O-1",
        ),
        pytest.param([0, 1], [0], Action.RERUN, 1, "Nothing is lost", id="C == 0 == O-1"),
        pytest.param(
            list(range(12)),
            list(range(9)),
            Action.RERUN,
            11,
            "does not run batch 9 to 10 again",
            id="C < O-1",
        ),
        pytest.param(
            [0, 1, 2], [0], Action.RERUN, 2, "does not run batch 1 again", id="C == 0 < O-1"
        ),
        pytest.param([0], [], Action.RERUN, 0, "Nothing is lost", id="no C, first batch"),
        pytest.param(
            [0, 1], [], Action.RERUN, 1, "There is no commit log", id="no C: written by 2.1"
        ),
        pytest.param([0, 1], [0, 1, 2], Action.FAIL, 1, "then fails", id="C > O"),
        pytest.param([], [3], Action.FAIL, None, "commits/3 exists, but no offset", id="C, no O"),
        pytest.param([5], [5], Action.FAIL, 5, "needs offsets/4", id="no O-1"),
        pytest.param([0, 3], [0, 3], Action.CONTINUE, 4, "async progress tracking", id="sparse"),
        pytest.param(
            [0, 1, 2, 3, 5], [0, 1, 2, 3, 5], Action.FAIL, 5, "needs offsets/4", id="a hole"
        ),
    ],
)
def test_what_a_restart_does(
    planned: list[int], committed: list[int], action: Action, batch: int | None, words: str
) -> None:
    verdict = restart(samples.checkpoint(samples.logs(planned, committed)))
    assert (verdict.action, verdict.batch) == (action, batch)
    assert words in verdict.words


def test_a_committed_batch_is_not_said_to_be_unfinished() -> None:
    verdict = restart(samples.checkpoint(samples.logs([0, 1], [0])))
    assert "no commit" not in verdict.words


@pytest.mark.parametrize("path", ["offsets/2", "offsets/1", "commits/1", "metadata"])
def test_what_cannot_be_read_stops_the_start(path: str) -> None:
    tree = samples.logs(range(3), range(2)) | {path: b"\xff"}
    verdict = restart(samples.checkpoint(tree))
    assert verdict.action is Action.FAIL
    assert f"{path} cannot be read" in verdict.words


def test_damage_further_down_does_not_stop_the_start() -> None:
    tree = samples.logs(range(5), range(4)) | {"offsets/0": b"", "commits/1": b"?"}
    assert restart(samples.checkpoint(tree)).action is Action.RERUN


def test_a_missing_identity_is_said_before_what_follows() -> None:
    tree = samples.sales(3)
    assert "metadata" not in restart(samples.checkpoint(tree)).words
    del tree["metadata"]
    found = restart(samples.checkpoint(tree))
    assert found.action is Action.RERUN
    assert found.words.startswith("The metadata file is missing. Spark 4.2 and later do not start")
