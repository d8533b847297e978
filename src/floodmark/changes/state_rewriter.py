"""Rewrites the state for a plan's steps in this process, and reads it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from floodmark.changes.execute import PlanPlaces
from floodmark.changes.plan.steps import RewriteState
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import WrongUse
from floodmark.statestore.rewrite.new_state import Given, Written, check_state, write_state
from floodmark.statestore.rewrite.old_rows import OldState, old_state
from floodmark.statestore.rewrite.preflight import require_fits
from floodmark.statestore.rewrite.target import StateTarget
from floodmark.storage.files import Files
from floodmark.storage.load import Entries, load


@dataclass
class StateRewriter:
    """Rewrites state, and remembers what it wrote for the comparison."""

    given: Callable[[int], Given] | None = None
    """Returns the rows that a user's function or table gives for an operator."""
    _written: dict[str, Written] = field(default_factory=dict)
    _checkpoint: Checkpoint | None = None

    def require(self, step: RewriteState, places: PlanPlaces) -> None:
        target = step.target
        if self.given is None and any(part.given for part in target.parts):
            raise WrongUse(
                "this plan needs rows that a function or a table gives",
                "They are not in the plan, and making them needs Spark.",
                "Carry it out with the verb itself and --execute.",
            )
        require_fits(target, self.old_state(target, places.origin))

    def rewrite(self, step: RewriteState, places: PlanPlaces) -> None:
        self._written[step.path] = self.write(step.target, places)

    def check(self, step: RewriteState, places: PlanPlaces) -> None:
        self.read_back(self._written[step.path], places)

    def write(self, target: StateTarget, places: PlanPlaces) -> Written:
        old = self.old_state(target, places.origin)
        return write_state(target, places.target, old, self.given_rows(target))

    def read_back(self, written: Written, places: PlanPlaces) -> None:
        check_state(written, places.target)

    def given_rows(self, target: StateTarget) -> Given | None:
        return self.given(target.operator) if self.given is not None else None

    def old_state(self, target: StateTarget, origin: Files) -> OldState:
        if target.from_operator is None:
            return lambda part, batch: None  # a bootstrap has no old checkpoint
        if self._checkpoint is None:
            self._checkpoint = load(origin, Entries.ALL)
        return old_state(target, origin, self._checkpoint)
