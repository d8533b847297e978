"""Builds and executes the plan of `repair`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from floodmark.changes import journal
from floodmark.changes.apply import carry_out
from floodmark.changes.carry.origin import refuse_dstreams, refuse_odd_content
from floodmark.changes.fingerprint import fingerprint
from floodmark.changes.plan import Plan, refuse_unaccepted, seal
from floodmark.changes.planners.repair import RepairOptions, mend, plan_repair
from floodmark.changes.repair.backups import Backup
from floodmark.changes.repair.patient import Patient
from floodmark.changes.repair.sink import known_sink
from floodmark.changes.verbs.carrying_out import Carrying, Change, absolute, doubted, places_of
from floodmark.storage.files import Files, open_files
from floodmark.storage.noted_places import opener
from floodmark.storage.repository import open_repository, snapshots
from floodmark.storage.starts import latest_note

if TYPE_CHECKING:
    from floodmark.checkpoint.evidence import Evidence
    from floodmark.rules.finding import Finding


def repair(path: str, options: RepairOptions, carrying: Carrying) -> Change:
    location = absolute(path)
    files = open_files(location, carrying.storage)
    refuse_dstreams(files)
    journal.refuse_unfinished(files)
    refuse_odd_content(files, files.list())
    standing = fingerprint(files)
    given = None
    if options.sink is not None:
        given = (absolute(options.sink), open_files(absolute(options.sink), carrying.storage))
    opened = opener([location, options.sink, options.backup], carrying.storage)
    sink = known_sink(latest_note(files), given, opened)
    backup = None
    if options.backup is not None:
        options = replace(options, backup=absolute(options.backup))
        backup = _backup(str(options.backup), carrying)
    patient = Patient(files, _doctor, sink, options.read_data, opened)
    mend(patient, backup)
    return carried(seal(plan_repair(patient, location, standing, options)), carrying)


def _doctor(files: Files, read_data: bool) -> tuple[Evidence, tuple[Finding, ...]]:
    from floodmark.diagnosis.gather import gather
    from floodmark.rules.registry import examine

    evidence = gather(files, 1.0 if read_data else None)
    return evidence, examine(evidence)


def _backup(repository: str, carrying: Carrying) -> Backup:
    files = open_files(repository, carrying.storage)
    open_repository(files)
    return Backup(files, reversed(snapshots(files)))


def carried(plan: Plan, carrying: Carrying) -> Change:
    target = open_files(plan.target, carrying.storage)
    if journal.read_record(target, plan) is None:
        plan = doubted(plan, target, carrying)
    if not carrying.execute or not plan.steps:
        return Change(plan)
    refuse_unaccepted(plan)
    outcome = carry_out(
        plan,
        places_of(plan, carrying.storage),
        carrying.wait_seconds,
        carrying.clock,
        carrying.progress,
    )
    return Change(outcome.plan, True, outcome.words)
