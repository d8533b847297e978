"""Reads all that one checkpoint's page shows, and keeps the answer until it changes."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from floodmark.changes import journal
from floodmark.changes.plan import Plan
from floodmark.changes.plan.steps import DeleteFile
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import COMMITS, NOTES, OFFSETS, PROGRESS, STARTS, batch_id
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.start_note import is_note
from floodmark.diagnosis.gather import gather
from floodmark.errors import FloodmarkError
from floodmark.fleet.anatomy import Anatomy, anatomy
from floodmark.fleet.batch_bars import Mark
from floodmark.fleet.card import bounded
from floodmark.fleet.detail import CheckpointDetail, PageFinding, detail
from floodmark.fleet.progress_lines import ProgressLine, parse_lines
from floodmark.rules.finding import Finding
from floodmark.rules.registry import examine
from floodmark.secret_text import redacted
from floodmark.storage.files import Files
from floodmark.storage.glimpse import Glimpse
from floodmark.storage.local import LocalFiles

_LINES = RelativePath(f"{NOTES}/{PROGRESS}")
_TAIL, _TAIL_OF_ONE = 2 << 20, 64 << 10
_KEPT = 16
_NOTES_READ = 30
_LONGEST_WORDS = 2000
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class _Read:
    stamp: object
    evidence: Evidence
    findings: tuple[Finding, ...]
    notes: tuple[Mapping[str, Any], ...]
    changes: tuple[Mark, ...]
    progress: tuple[ProgressLine, ...]


class Reader:
    """Keeps the last few checkpoints that were shown, as they were read."""

    def __init__(self) -> None:
        self._read: OrderedDict[str, _Read] = OrderedDict()
        self._answers: OrderedDict[tuple[str, str], tuple[_Read, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def detail(self, id_: str, files: Files, stamp: object) -> CheckpointDetail:
        def make(found: _Read) -> CheckpointDetail:
            findings = [shown_finding(one) for one in found.findings]
            return detail(
                id_,
                found.evidence,
                files.root,
                findings,
                found.notes,
                found.changes,
                found.progress,
                int(time.time() * 1000),
            )

        return self._answer("detail", id_, files, stamp, make)

    def anatomy(self, id_: str, files: Files, stamp: object) -> Anatomy:
        def make(found: _Read) -> Anatomy:
            return anatomy(found.evidence.checkpoint, found.evidence.snapshots)

        return self._answer("anatomy", id_, files, stamp, make)

    def _answer(
        self, name: str, id_: str, files: Files, stamp: object, make: Callable[[_Read], _Answer]
    ) -> _Answer:
        found = self._gathered(id_, files, stamp)
        with self._lock:
            held = self._answers.get((name, id_))
            if held is not None and held[0] is found:
                answer: _Answer = held[1]
                return answer
        made = make(found)
        with self._lock:
            self._answers[name, id_] = (found, made)
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
        return made

    def _gathered(self, id_: str, files: Files, stamp: object) -> _Read:
        with self._lock:
            held = self._read.get(id_)
            if held is not None and held.stamp == stamp:
                self._read.move_to_end(id_)
                return held
        evidence = gather(files)
        found = _Read(
            stamp,
            evidence,
            examine(evidence),
            tuple(start_notes(files)),
            tuple(_changes(files)),
            read_progress(files),
        )
        with self._lock:
            self._read[id_] = found
            while len(self._read) > _KEPT // 2:
                self._read.popitem(last=False)
        return found


def stamp_of(files: Files, logs: Glimpse | None) -> object:
    """Return a value that changes when the logs or notes do, and also from time to time."""
    if isinstance(files, LocalFiles):
        info = files.file_info(_LINES)
        stamps = files.folder_stamps(OFFSETS, COMMITS, STARTS, journal.FOLDER, "")
        return stamps, info and info.size, int(time.time() // 60)
    return logs and (logs.newest, logs.committed), int(time.time() // 60)


def read_progress(files: Files, last: int = 500, most: int = _TAIL) -> tuple[ProgressLine, ...]:
    """Return the newest lines, from the end of the file; none if there is no file."""
    if not isinstance(files, LocalFiles):
        return ()
    try:
        return parse_lines(files.tail(_LINES, most), last)
    except FloodmarkError:
        return ()


def newest_progress(files: Files) -> ProgressLine | None:
    found = read_progress(files, 1, _TAIL_OF_ONE)
    return found[0] if found else None


def start_notes(files: Files) -> Iterator[Mapping[str, Any]]:
    """Yield the notes of the last starts, oldest first, without unreadable ones."""
    numbers = sorted(
        number
        for name in files.level(STARTS).files
        if (number := batch_id(name.removesuffix(".json"))) is not None
    )
    paths = [RelativePath(f"{STARTS}/{number}.json") for number in numbers[-_NOTES_READ:]]
    for data in files.read_many(paths).values():
        try:
            note = json.loads(data) if isinstance(data, bytes) else None
        except (ValueError, RecursionError):
            continue
        if note is not None and is_note(note):
            yield note


def _changes(files: Files) -> Iterator[Mark]:
    """Yield the changes that floodmark has made here, from its journal."""
    try:
        records = journal.read_records(files)
    except FloodmarkError:
        return  # the doctor and `undo` report what is wrong with it
    for record in records[-_NOTES_READ:]:
        batch = _batch_of(record.plan)
        if batch is not None:
            words = f"floodmark {record.plan.verb}: {record.stage.value}"
            yield Mark(batch, "floodmark", bounded(words))


def _batch_of(plan: Plan) -> int | None:
    """Return the batch of the chart to which a change belongs, by the entries that it changes."""
    deeds: dict[str, list[int]] = {}
    for step in plan.steps:
        folder, _, name = step.path.partition("/")
        number = batch_id(name) if folder in (OFFSETS, COMMITS) else None
        if number is not None:
            deeds.setdefault(step.do, []).append(number)
    if DeleteFile.do in deeds:
        return min(deeds[DeleteFile.do])
    return max((batch for found in deeds.values() for batch in found), default=None)


def shown_finding(finding: Finding) -> PageFinding:
    return PageFinding(
        finding.code,
        finding.rule,
        finding.severity.value,
        bounded(finding.path),
        bounded(redacted(finding.what), _LONGEST_WORDS),
        bounded(redacted(finding.why), _LONGEST_WORDS),
        bounded(redacted(finding.do), _LONGEST_WORDS),
        finding.repairable,
    )
