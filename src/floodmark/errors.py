"""Every exception of the project, its words and its exit status.

An error is three things: what went wrong and where, why, and what to do next.
The command line prints them in that order; nothing else decides an exit status.
"""

from __future__ import annotations

from floodmark.visible import visible

# Nobody reads more, and a stranger's file may be quoted.
_LONGEST = 20_000


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


class FloodmarkError(Exception):
    """The root of them all. `status` is the exit status that the command line gives.

    Its words are without secrets, and as `str` without control characters, whoever logs them.
    """

    status = 1

    def __init__(self, what: str, why: str = "", do: str = "") -> None:
        from floodmark.secret_text import redacted  # most commands end without an error

        self.what, self.why, self.do = (redacted(_cut(part)) for part in (what, why, do))
        super().__init__(self.what)

    def name_file(self, path: str) -> None:
        """Puts a file before the words, unless they tell of it already."""
        if path not in self.what:
            self.what = f"{path}: {self.what}"
            self.args = (self.what,)

    def __str__(self) -> str:
        return visible("\n".join(part for part in (self.what, self.why, self.do) if part))


class NoAnswer(FloodmarkError):
    """The question is clear and the answer is no."""

    status = 1


class WrongUse(FloodmarkError):
    """The command or the call does not fit together."""

    status = 2


class NotACheckpoint(FloodmarkError):
    """The place can be read, and is something else."""

    status = 3


class CannotRead(FloodmarkError):
    """Storage did not give what was asked of it."""

    status = 3
    may_come = True
    """Asked again, storage may give it: what is not known must not count as lost or damaged."""


class FileGone(CannotRead):
    """A file is not there: never was, or a running query purged it after we listed it."""

    may_come = False


class StateFileMissing(FileGone):
    """A file that the state of a batch needs is not in its folder."""


class PartitionsMissing(StateFileMissing):
    """The checkpoint pins far more partitions than its state has."""


class ContentLost(CannotRead):
    """A repository does not have what one of its snapshots names."""


class NotThere(CannotRead):
    """The folder that was asked for does not exist."""

    may_come = False


class OverLimit(CannotRead):
    """It is larger, or would grow larger, than what is read of its kind."""

    may_come = False


class UnsafePath(CannotRead):
    """A name leads out of the place that it belongs to, or a link does."""

    may_come = False


class MalformedFile(FloodmarkError):
    """A file's bytes are not what its format says."""

    status = 3


class UnknownVersion(MalformedFile):
    """The file says a version that is newer than what this release reads."""

    def __init__(self, found: str, newest: str, writer: str = "Spark") -> None:
        super().__init__(
            f"format version {found!r}; this floodmark reads up to {newest!r}",
            f"A newer {writer} probably wrote it.",
            "Upgrade floodmark.",
        )
        self.found = found
        self.newest = newest


class UnknownProvider(FloodmarkError):
    """The state is kept by a class that is not Spark's own."""

    status = 3


class CannotOutline(FloodmarkError):
    """Spark does not take the new code, or not without its data."""

    status = 2


class BatchPurged(FloodmarkError):
    """The batch was there once; Spark has removed it since, or it never was."""

    status = 1


class StatePurged(BatchPurged):
    """Spark has removed the state of that batch, or never wrote it."""


class Refused(FloodmarkError):
    """It could be done, and would hurt: nothing was changed."""

    status = 4


class NotReachable(Refused):
    """What a start needs does not answer now; time alone may mend that."""


class StalePlan(Refused):
    """The checkpoint is not any more what the plan was made for."""


class EditedPlan(Refused):
    """The plan's content does not match its digest, or another release made it."""


class Unfinished(Refused):
    """An earlier change of this place stopped midway and has to be finished or undone."""


class InUse(Refused):
    """A query runs on the checkpoint, or seems to."""


class NotEmpty(Refused):
    """The place for a new checkpoint holds something already."""


class WouldLose(Refused):
    """It could be done, and records or state would be lost or counted twice."""

    accept: tuple[str, ...] = ()
    """What `--accept` has to name, where nothing else is missing."""


class NotCarried(Refused):
    """The state of the old code has no one meaning for the new."""


class CannotWrite(Refused):
    """Storage did not take the very first file: nothing was changed."""


class StoppedMidway(FloodmarkError):
    """It began and did not finish; `do` says how to go on."""

    status = 5


class FailedForGood(StoppedMidway):
    """It fails in the same way each time: starting again does not help, somebody has to act."""

    status = 1


class Superseded(StoppedMidway):
    """Another run has taken the checkpoint over: this one stops and writes nothing more."""
