"""Defines every exception of the project, its words and its exit status.

An error has three parts: what went wrong and where, why, and what to do next. The command line
prints them in that order; nothing else decides an exit status.
"""

from __future__ import annotations

from floodmark.visible import visible

# Nobody reads more, and the text may quote a stranger's file.
_LONGEST = 20_000
_OF_STATE = ("pyarrow", "numpy", "lz4", "rocksdict", "xxhash", "google_crc32c")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


class FloodmarkError(Exception):
    """The root of all exceptions. `status` is the exit status of the command line.

    Its words contain no secrets, and its `str` no control characters, whoever logs it.
    """

    status = 1

    def __init__(self, what: str, why: str = "", do: str = "") -> None:
        from floodmark.secret_text import redacted  # most commands end without an error

        self.what, self.why, self.do = (redacted(_cut(part)) for part in (what, why, do))
        super().__init__(self.what)

    def name_file(self, path: str) -> None:
        """Put a file before the words, unless they already name it."""
        if path not in self.what:
            self.what = f"{path}: {self.what}"
            self.args = (self.what,)

    def __str__(self) -> str:
        return visible("\n".join(part for part in (self.what, self.why, self.do) if part))


class NoAnswer(FloodmarkError):
    """The question is clear, and the answer is no."""

    status = 1


class WrongUse(FloodmarkError):
    """The command or the call does not fit together."""

    status = 2


class ExtraMissing(WrongUse):
    """Packages that the base install leaves out are needed here, and are not installed."""


def missing_for_state() -> list[str]:
    """Return the packages of the `state` extra that are not installed; import none of them."""
    from importlib.util import find_spec

    return [name for name in _OF_STATE if not find_spec(name)]


def require_state_extra() -> None:
    """Name all missing packages at once, before the first import fails."""
    missing = missing_for_state()
    if missing:
        raise ExtraMissing(
            f"looking inside the state needs {', '.join(missing)}",
            "These packages are heavy, so the base install leaves them out.",
            "Install them with: pip install 'floodmark[state]'",
        )


def no_pyspark(extras: str = "spark") -> ExtraMissing:
    return ExtraMissing(
        "this runs code on Spark, and pyspark is not installed",
        "Reading a checkpoint does not need pyspark, so the base install leaves it out.",
        f"Install it with: pip install 'floodmark[{extras}]'",
    )


class NotACheckpoint(FloodmarkError):
    """The location can be read, but is something else."""

    status = 3


class CannotRead(FloodmarkError):
    """Storage did not give what was requested."""

    status = 3
    may_come = True
    """Storage may give it later: until then it must not count as lost or damaged."""


class FileGone(CannotRead):
    """A file does not exist: it never did, or a running query purged it after the listing."""

    may_come = False


class StateFileMissing(FileGone):
    """A file that the state of a batch needs is not in its folder."""


class PartitionsMissing(StateFileMissing):
    """The checkpoint pins far more partitions than its state has."""


class ContentLost(CannotRead):
    """A repository does not have content that one of its snapshots names."""


class NotThere(CannotRead):
    """The requested folder does not exist."""

    may_come = False


class OverLimit(CannotRead):
    """A file is larger, or would grow larger, than the limit of its kind."""

    may_come = False


class UnsafePath(CannotRead):
    """A name or a link leads out of the location that it belongs to."""

    may_come = False


class MalformedFile(FloodmarkError):
    """A file's bytes are not what its format says."""

    status = 3


class UnknownVersion(MalformedFile):
    """The file has a newer version than this release can read."""

    def __init__(self, found: str, newest: str, writer: str = "Spark") -> None:
        super().__init__(
            f"format version {found!r}; this floodmark reads up to {newest!r}",
            f"A newer {writer} probably wrote it.",
            "Upgrade floodmark.",
        )
        self.found = found
        self.newest = newest


class UnknownProvider(FloodmarkError):
    """A class that is not Spark's own keeps the state."""

    status = 3


class CannotOutline(FloodmarkError):
    """Spark does not accept the new code, or not without its data."""

    status = 2


class BatchPurged(FloodmarkError):
    """The batch's entries are gone: Spark has removed them, or there were none."""

    status = 1


class StatePurged(BatchPurged):
    """Spark has removed the state of that batch, or never wrote it."""


class Refused(FloodmarkError):
    """The change is possible but harmful: nothing was changed."""

    status = 4


class NotReachable(Refused):
    """A system that a start needs does not answer now; waiting may be enough."""


class StalePlan(Refused):
    """The checkpoint has changed since the plan was made."""


class EditedPlan(Refused):
    """The plan's content does not match its digest, or another release made it."""


class Unfinished(Refused):
    """An earlier change of this checkpoint stopped midway and has to be finished or undone."""


class InUse(Refused):
    """A query runs on the checkpoint, or seems to."""


class NotEmpty(Refused):
    """The location for a new checkpoint is not empty."""


class WouldLose(Refused):
    """The change is possible, but would lose records or state, or count them twice."""

    accept: tuple[str, ...] = ()
    """The names for `--accept`, where nothing else is missing."""


class NotCarried(Refused):
    """The state of the old code has no single meaning for the new code."""


class CannotWrite(Refused):
    """Storage did not accept the very first file: nothing was changed."""


class StoppedMidway(FloodmarkError):
    """The work began and did not finish; `do` says how to continue."""

    status = 5


class FailedForGood(StoppedMidway):
    """The work fails in the same way each time: a restart does not help, somebody has to act."""

    status = 1


class Superseded(StoppedMidway):
    """Another run has taken the checkpoint over: this one stops and writes nothing more."""
