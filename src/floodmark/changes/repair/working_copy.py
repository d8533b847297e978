"""The checkpoint under repair, as the repairs so far would leave it.

Repairs work on an overlay, so the doctor can look again before anything is changed. The plan is
the difference between the overlay and the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from floodmark.changes.carry.checkpoint_files import with_checksums
from floodmark.changes.plan.steps import Step
from floodmark.changes.sinks.known_sink import KnownSink
from floodmark.checkpoint.checksums.sidefiles import agrees
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import FileInfo, side_file
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.errors import CannotRead
from floodmark.rules.finding import Finding, Severity
from floodmark.rules.mend import Mend
from floodmark.rules.registry import mends_of
from floodmark.storage.files import Files
from floodmark.storage.overlay import Overlay
from floodmark.storage.repository import Stored

Doctor = Callable[[Files, bool], tuple[Evidence, tuple[Finding, ...]]]
"""Examines a checkpoint; True: also reads its state."""
REPEATS, CHANGES, SAME_QUERY = "repeats", "changed-files", "unchanged-query"
SINK, STREAM = "sink", "stream"
_REPLACED = "the checksum of what is replaced"
_NOT_COUNTED = (
    "How many rows that is cannot be counted: a query with state also emits rows that a batch "
    "did not read (windows that the watermark closed, timeouts, totals)."
)


@dataclass(frozen=True)
class Repeat:
    """The part of one source that is read a second time."""

    source: str
    unit: str
    """`records`, `files`, Delta's `versions`, or a rate source's `seconds`."""
    at_most: int | None
    """The highest possible number; None: unknown."""
    batches: tuple[int, ...]
    """The batches that first read it; empty where only the source's list knew."""
    reaches: str
    """`sink`: a sink that has those batches gets it again, and the state has it once.
    `stream`: the state takes it again, too."""

    @property
    def words(self) -> str:
        if self.at_most is None:
            return f"how much of source {self.source} is not known any more"
        unit = self.unit.removesuffix("s") if self.at_most == 1 else self.unit
        return f"{self.at_most:,} {unit} of source {self.source}"


@dataclass(frozen=True)
class Emitted:
    """The output of batches that run again."""

    batches: tuple[int, ...]
    rows: int | None
    """The number of rows; None: nobody has counted them."""

    @property
    def words(self) -> str:
        if self.rows is None:
            return _NOT_COUNTED
        return f"By its log, the sink has {self.rows:,} row{'' if self.rows == 1 else 's'} of them."


@dataclass(frozen=True)
class Risk:
    """A risk that the user must accept by name before a repair is executed."""

    name: str
    words: str
    repeats: tuple[Repeat, ...] = ()
    emitted: Emitted | None = None

    def covers(self, other: Risk) -> bool:
        """Whether this risk includes another one, because it goes back further."""
        return bool(other.repeats) and all(
            any(
                old.batches
                and set(old.batches) <= set(new.batches)
                and (old.source, old.reaches) == (new.source, new.reaches)
                for new in self.repeats
            )
            for old in other.repeats
        )


class WorkingCopy:
    def __init__(
        self,
        files: Files,
        doctor: Doctor,
        sink: KnownSink,
        read_data: bool,
        opened: Callable[[str], Files],
    ) -> None:
        """Make a copy; `opened` opens another folder, such as the input folder."""
        self.files = Overlay(files)
        self.sink = sink
        self.opened = opened
        self.reasons: dict[str, str] = {}
        self.restored: dict[str, Stored] = {}
        self.sink_steps: tuple[Step, ...] = ()
        self.risks: list[Risk] = []
        self.notes: list[str] = []
        self.read_data = read_data
        self._doctor = doctor
        self._before = files
        self.look()

    def look(self) -> None:
        """Let the doctor examine the checkpoint again as the repairs would leave it."""
        self.evidence, self.findings = self._doctor(self.files, self.read_data)

    def refuse_not_given(self) -> None:
        """Refuse if the storage did not give a file, as it would look like a lost one."""
        for error in self.files.not_given:
            raise CannotRead(
                f"{error.what}: nothing was planned, for it may be whole",
                error.why,
                "Repeat the command. If storage has lost the file for good, remove it: `repair` "
                "then knows that it is gone.",
            )

    @property
    def checkpoint(self) -> Checkpoint:
        return self.evidence.checkpoint

    @cached_property
    def before(self) -> dict[str, FileInfo]:
        return {file.path: file for file in self._before.list().files}

    def found(self, *mends: Mend, errors: bool = False) -> list[Finding]:
        """Return the findings whose rule offers one of these mends."""
        return [
            item
            for item in self.findings
            if not (errors and item.severity is not Severity.ERROR)
            and not set(mends).isdisjoint(mends_of(item))
        ]

    def has(self, path: str) -> bool:
        files = self.files
        return path in files.written or (path in self.before and path not in files.removed)

    def write(self, path: str, data: bytes, why: str) -> None:
        self.files.write(RelativePath(path), data)
        self.reasons[path] = why
        side = side_file(path)
        if self.has(side) and not agrees(self.files.read(RelativePath(side)), data):
            self._drop(side, _REPLACED)

    def restore(self, stored: Stored, data: bytes, why: str) -> None:
        self.write(stored.path, data, why)
        self.restored[stored.path] = stored

    def remove(self, path: str, why: str) -> None:
        """Remove a file with its checksums."""
        for name in with_checksums(path, self.before):
            if self.has(name):
                self._drop(name, why)

    def _drop(self, path: str, why: str) -> None:
        self.files.delete([RelativePath(path)])
        self.restored.pop(path, None)
        self.reasons[path] = why

    @property
    def keeps_state(self) -> bool:
        """Whether the query has state, or the last start's note names state that is gone."""
        return bool(self.checkpoint.state_operators or self.found(Mend.LOST_STATE))

    def risk(
        self,
        name: str,
        words: str,
        repeats: Sequence[Repeat] = (),
        emitted: Emitted | None = None,
    ) -> None:
        risk = Risk(name, words, tuple(repeats), emitted)
        self.risks = [old for old in self.risks if old != risk and not risk.covers(old)]
        self.risks.append(risk)

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)
