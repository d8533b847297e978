"""Rewrites state into new code's columns, for `migrate` and `bootstrap`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from floodmark.changes.apply import PlanPlaces
from floodmark.changes.plan import Step
from floodmark.checkpoint.model import Checkpoint
from floodmark.errors import WrongUse
from floodmark.statestore.open import open_state
from floodmark.statestore.rewrite.goal import Part, ReshapeTarget, goal_from_json
from floodmark.statestore.rewrite.reshape import Given, Views, Written, check_state, write_state
from floodmark.statestore.view import StateView
from floodmark.storage.files import Files
from floodmark.storage.load import Entries, load


@dataclass
class ReshapeRewriter:
    """It remembers what it has written, to compare."""

    given: Callable[[int], Given] | None = None
    """Operator → the rows that a user's function or table gives for it."""
    _written: dict[tuple[str, int], Written] = field(default_factory=dict)
    _checkpoint: Checkpoint | None = None

    def rewrite(self, step: Step, places: PlanPlaces) -> None:
        goal = goal_of(step)
        if self.given is None and any(part.given for part in goal.parts):
            raise WrongUse(
                "this plan needs rows that a function or a table gives",
                "They are not in the plan, and making them needs Spark.",
                "Carry it out with the verb itself and --execute.",
            )
        self._written[step.path, goal.version] = self.write(goal, places)

    def write(self, goal: ReshapeTarget, places: PlanPlaces) -> Written:
        given = self.given(goal.operator) if self.given is not None else None
        return write_state(goal, places.target, self.views(goal, places.origin), given)

    def check(self, step: Step, places: PlanPlaces) -> None:
        check_state(self._written[step.path, goal_of(step).version], places.target)

    def views(self, goal: ReshapeTarget, origin: Files) -> Views:
        if self._checkpoint is None:
            self._checkpoint = load(origin, Entries.ALL)
        return views_of(goal, origin, self._checkpoint)


def views_of(goal: ReshapeTarget, origin: Files, checkpoint: Checkpoint) -> Views:
    """How the old rows of each part are opened."""

    def view(part: Part, batch: int) -> StateView | None:
        if part.source is None or goal.from_operator is None:
            return None
        return open_state(origin, checkpoint, goal.from_operator, part.source, batch)

    return view


def goal_of(step: Step) -> ReshapeTarget:
    assert step.how is not None
    return goal_from_json(step.how)
