"""Decides whether a failed pipeline starts again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from floodmark.engine.run.failure import Failure, FailureKind, is_outage
from floodmark.errors import CannotRead, FileGone, FloodmarkError, NotReachable, Refused

SAME_FAILURE_TIMES = 3
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class RestartPolicy:
    on_failure: bool = False
    most: int = 10
    """The most starts in a row; a committed batch resets the count."""
    first_wait: float = _FIRST_WAIT_SECONDS

    def wait(self, failures: int) -> float:
        return float(min(self.first_wait * 2 ** (failures - 1), _LONGEST_WAIT_SECONDS))


@dataclass(frozen=True)
class GiveUp:
    words: str
    for_good: bool
    """True where starting again does not help."""


def decide(policy: RestartPolicy, failures: Sequence[Failure]) -> float | GiveUp:
    """Return after how many seconds to start again, or why not.

    `failures` are those since a batch was committed.
    """
    last = failures[-1]
    if not policy.on_failure:
        return GiveUp("failed", for_good=False)
    same = sum(one.signature == last.signature for one in failures)
    # An outage looks the same at every try, but it ends.
    if last.kind is not FailureKind.OUTAGE and same >= SAME_FAILURE_TIMES:
        return GiveUp(f"failed {same} times in the same way", for_good=True)
    if len(failures) > policy.most:
        return GiveUp(f"failed {len(failures)} times in a row", for_good=False)
    return policy.wait(len(failures))


def may_pass(error: FloodmarkError) -> bool:
    """Whether waiting alone may remove the reason for which a start was refused."""
    if isinstance(error, (NotReachable, CannotRead)):
        return not isinstance(error, FileGone)
    if isinstance(error, Refused):
        return False
    return is_outage(f"{error} {error.__cause__ or ''}")
