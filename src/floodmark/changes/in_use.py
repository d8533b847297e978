"""Finds whether a query runs on a checkpoint: Spark has no lock, so there are three ways.

Proof: floodmark's own runs hold a lease and write down their end; a process of this machine has
files of the checkpoint open. Watching: if the newest file is fresh, the folder is watched for as
long as the last batches took. Without proof and without signs a query may still be running, as a
query without input writes nothing for hours. A change in place must then be accepted by name
(`--accept maybe-running`), see docs/decisions/0012. `--watch 2m` watches the folder for longer,
and the plan says what was written meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from floodmark.changes import journal
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.plan import NEEDED, NOT_IN_USE, Consequence, Plan, seal
from floodmark.checkpoint.layout import COMMITS, NOTES, OFFSETS, FileInfo, batch_ids
from floodmark.checkpoint.metadata import parse_metadata
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.text import several
from floodmark.errors import FloodmarkError, InUse
from floodmark.storage.files import Files, WritableFiles
from floodmark.storage.lease_files import (
    EPOCHS,
    PATH,
    STANDS_STILL_SECONDS,
    claim_path,
    claimed_epochs,
    living,
    proved,
    read_claim,
    read_holder,
)
from floodmark.storage.machine.query import (
    lies_on_this_machine,
    no_jvm_here,
    signs_of_a_query,
    user_here,
)

MAYBE_RUNNING = "maybe-running"

_SHORTEST_MS, _LONGEST_MS = 2_000, 15_000
_POLL_SECONDS = 0.25
# How long a plain query may be quiet and still count as running.
_QUIET_MS = 5 * 60_000
_QUIET_INTERVALS = 10
_DAY_MS = 24 * 3_600_000
_BATCHES = 20


@dataclass(frozen=True)
class Clock:
    """The time by which signs are judged; a test uses its own."""

    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    pause: Callable[[float], Any] = time.sleep

    def storage_now_ms(self, files: WritableFiles) -> int:
        """Return the time of the clock that sets the files' times; it may be another machine's."""
        if self.now_ms is not Clock.now_ms or lies_on_this_machine(files):
            return self.now_ms()
        name = f"{NOTES}/.clock.{os.urandom(16).hex()}.tmp"
        try:
            files.write(RelativePath(name), b"clock")
            times = [file.mtime_ms for file in files.list(NOTES).files if file.path == name]
            files.delete([RelativePath(name)])
        except FloodmarkError:
            return self.now_ms()
        return next((mtime for mtime in times if mtime is not None), self.now_ms())


def user_of(files: WritableFiles, clock: Clock) -> str | None:
    """Return who uses the checkpoint, as a text; None where there is no sign of anyone."""
    return _leaseholder(files, clock) or user_here(files) or _movement(files, clock)


def refuse_in_use(files: WritableFiles, clock: Clock, wait_seconds: float | None = None) -> None:
    """Refuse a checkpoint in use; wait first, if requested, until the query has stopped."""
    until_ms = clock.now_ms() + int((wait_seconds or 0) * 1000)
    while True:
        user = user_of(files, clock)
        if user is None:
            return
        if clock.now_ms() >= until_ms:
            raise in_use(files, user)
        clock.pause(1.0)


def in_use(files: Files, user: str) -> InUse:
    return InUse(
        f"{files.root} is in use: {user}",
        "Two writers on one checkpoint undo each other's batches.",
        "Stop the query first, or wait for it with --wait SECONDS.",
    )


def _leaseholder(files: Files, clock: Clock) -> str | None:
    holder = read_holder(files)
    if holder is None:
        return None
    found = living(files, holder, clock.pause, whole=False)
    return f"{found.words}, holds its lease" if found else None


def _movement(files: WritableFiles, clock: Clock) -> str | None:
    before = _written(files)
    times = [file.mtime_ms for file in before if file.mtime_ms is not None]
    if not times:
        return None
    window = _window_ms(before)
    until_ms = max(times) + window
    now_ms = clock.storage_now_ms(files)
    # A clock that is behind the storage's clock would watch for ever.
    rounds = int(min(until_ms - now_ms, window) / 1000 / _POLL_SECONDS) + 1
    for _ in range(rounds if until_ms > now_ms else 0):
        clock.pause(_POLL_SECONDS)
        changed = {file[:2] for file in _written(files)} ^ {file[:2] for file in before}
        if changed:
            return f"{sorted(changed)[0][0]} changed while it was watched"
    return None


def _written(files: Files) -> tuple[FileInfo, ...]:
    return tuple(file for file in files.list().files if not file.path.startswith(NOTES + "/"))


def _window_ms(written: tuple[FileInfo, ...]) -> int:
    """Return the time of two batches, from the newest entries of the offset log."""
    between = _intervals(written)[-1:]
    return max(_SHORTEST_MS, min(2 * sum(between), _LONGEST_MS))


def _intervals(files: Iterable[FileInfo]) -> list[int]:
    """Return the times between the newest batches, from the offset log's entries."""
    times = sorted(
        file.mtime_ms
        for file in files
        if file.path.startswith(OFFSETS + "/") and file.mtime_ms is not None
    )[-_BATCHES:]
    return [after - before for before, after in pairwise(times)]


def maybe_running(files: WritableFiles, clock: Clock, execute: bool = True) -> str | None:
    """Return why a query may be running although there is no sign of one; None: no reason.

    Without `execute` nothing is written, so the storage's clock is not read.
    """
    log = (*files.list(OFFSETS).files, *files.list(COMMITS).files)
    times = [file.mtime_ms for file in log if file.mtime_ms is not None]
    if not times or no_jvm_here(files):
        return None
    last_ms = max(times)
    if _ended_by_its_lease(files, last_ms):
        return None
    signs = signs_of_a_query(files, _query_id(files))
    if not signs and _is_as_a_change_left_it(files):
        return None
    planned, committed = batch_ids(log, OFFSETS), batch_ids(log, COMMITS)
    in_flight = bool(planned) and (not committed or planned[-1] > committed[-1])
    longest = max(_intervals(log), default=0)
    quiet_ms = min(max(_QUIET_MS, _QUIET_INTERVALS * longest), _DAY_MS)
    now_ms = clock.storage_now_ms(files) if execute else clock.now_ms()
    if not signs and now_ms - last_ms > (_DAY_MS if in_flight else quiet_ms):
        return None
    last = datetime.fromtimestamp(last_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    batch = f"Batch {planned[-1]} is in flight" if in_flight else "Its last batch is committed"
    silent = (
        "No lease shows that its query has ended, and a query that waits for input, or works on "
        "a long batch, writes nothing."
    )
    return " ".join([f"{batch}, and the log was last written at {last}.", *(signs or [silent])])


def _query_id(files: Files) -> str | None:
    try:
        return parse_metadata(files.read(RelativePath("metadata"))).id
    except FloodmarkError:
        return None


def _is_as_a_change_left_it(files: Files) -> bool:
    """Whether the newest files are floodmark's own, so that they show no query."""
    records = journal.read_records(files)
    return bool(records) and records[-1].after == fingerprint(files).digest


def _ended_by_its_lease(files: Files, last_ms: int) -> bool:
    """Whether the last run noted its end, or is dead, and the log has not changed since.

    All times are the storage's own. A run that is neither proved dead nor alive is watched when the
    change is executed.
    """
    times = {file.path: file.mtime_ms for file in files.list(NOTES).files}
    holder, epochs = read_holder(files), claimed_epochs(files)
    if holder is not None:
        beat_ms = times.get(PATH) or times.get(claim_path(holder.epoch))
        if beat_ms is None or proved(holder):
            return False
        return last_ms <= beat_ms + STANDS_STILL_SECONDS * 1000
    claim = read_claim(files, epochs[-1]) if epochs else None
    ended_ms = times.get(f"{EPOCHS}/{epochs[-1]}.json") if epochs else None
    return claim is not None and claim.ended and ended_ms is not None and last_ms <= ended_ms


def watch(files: Files, clock: Clock, seconds: float) -> tuple[str, bool]:
    """Watch the checkpoint; return a sentence, and whether anything was written."""
    before = {file[:2] for file in _written(files)}
    watched, took, looks = 0.0, 0.0, 1
    while watched < seconds:
        # Listing an object store takes time and costs requests, so look less often.
        pause = min(max(1.0, 5 * took), seconds - watched)
        clock.pause(pause)
        began = time.monotonic()
        changed = sorted(path for path, *_ in {file[:2] for file in _written(files)} ^ before)
        took = time.monotonic() - began
        watched += pause + took
        looks += 1
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            return (
                f"Watched for {several(round(watched), 'second')}: {changed[0]}{more} changed. "
                "A query runs on it.",
                True,
            )
    return (
        f"Watched for {several(round(watched), 'second')}, with {several(looks, 'look')}: nothing "
        "was written. A query that waits for input writes nothing either.",
        False,
    )


def with_doubt(
    plan: Plan,
    target: WritableFiles,
    clock: Clock,
    accept: Iterable[str],
    execute: bool,
    watch_seconds: float = 0.0,
) -> Plan:
    """Add to a change in place what must be accepted where a query may be running."""
    accepted = sorted({*plan.options.get("accept", ()), *accept})
    names = {condition.name for condition in plan.preconditions}
    if not plan.about_target or NOT_IN_USE not in names or not plan.steps:
        return plan
    if watch_seconds:
        words, moved = watch(target, clock, watch_seconds)
        if moved and execute:
            raise in_use(target, words)
        plan = seal(replace(plan, notes=(words, *plan.notes)))
    why = maybe_running(target, clock, execute)
    if why is None:
        return plan
    words = (
        f"{why} If one runs, it goes on from its own memory and the two logs part; stop it first. "
        "`undo` then puts back what this change replaces."
    )
    needed = sorted({*plan.options.get(NEEDED, ()), MAYBE_RUNNING})
    risk = Consequence(f"--accept {MAYBE_RUNNING}", words, True)
    options = {**plan.options, "accept": accepted, NEEDED: needed}
    return seal(replace(plan, options=options, consequences=(*plan.consequences, risk)))
