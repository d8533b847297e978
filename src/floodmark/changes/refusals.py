"""Why a change is not made: each leaves everything as it was."""

from __future__ import annotations

from floodmark.errors import Refused


class StalePlan(Refused):
    """The checkpoint is not any more what the plan was made for."""


class InUse(Refused):
    """A query runs on the checkpoint, or seems to."""


class NotEmpty(Refused):
    """The place for a new checkpoint holds something already."""


class EditedPlan(Refused):
    """The plan's content does not match its digest, or another release made it."""


class Unfinished(Refused):
    """An earlier change of this place stopped midway and has to be finished or undone."""


class WouldLose(Refused):
    """It could be done, and records or state would be lost or counted twice."""


class CannotWrite(Refused):
    """Storage did not take the very first file: nothing was changed."""
