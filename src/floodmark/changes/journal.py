"""Writes what a change does to `_floodmark/journal/<plan>.json` in its target.

The journal has the whole plan before anything changes. So a change that stopped midway can be
finished or taken back without anything else. `_floodmark/kept/<plan>/` has what a step replaces.
While a change is under way, the newest entry in offsets/ is no offset: every Spark refuses to
start on it, and shows its words.

A journal is a file of the checkpoint, so a stranger may have written it. Floodmark trusts it only
for the location that contains it: see docs/security.md.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from enum import Enum

from floodmark.changes.fingerprint import BLOCK
from floodmark.changes.plan import Plan, plan_to_json
from floodmark.changes.plan.parsing import plan_from_json
from floodmark.checkpoint.layout import NOTES, OFFSETS, batch_id
from floodmark.checkpoint.relative_path import RelativePath, shown
from floodmark.checkpoint.text import json_text
from floodmark.errors import CannotRead, FileGone, MalformedFile, NoAnswer, StalePlan, Unfinished
from floodmark.storage.files import Files, WritableFiles

FOLDER = f"{NOTES}/journal"
KEPT = f"{NOTES}/kept"
VERSION = 1


class Stage(str, Enum):
    BEGUN = "begun"
    FINISHED = "finished"
    UNDOING = "undoing"
    UNDONE = "undone"


@dataclass(frozen=True)
class Record:
    plan: Plan
    stage: Stage
    number: int
    """The number of the change; the changes of one location are numbered in order."""
    after: str = ""
    """The fingerprint after the finished change."""

    @property
    def unfinished(self) -> bool:
        return self.stage in (Stage.BEGUN, Stage.UNDOING)


def path_of(plan: Plan) -> RelativePath:
    return RelativePath(f"{FOLDER}/{plan.id}.json")


def kept_folder(plan: Plan) -> str:
    return f"{KEPT}/{plan.id}"


def write_record(files: WritableFiles, record: Record) -> None:
    value = {
        "floodmark": "journal",
        "version": VERSION,
        "stage": record.stage.value,
        "number": record.number,
        "after": record.after,
        "plan": plan_to_json(record.plan),
    }
    files.write(path_of(record.plan), json_text(value).encode())


def read_records(files: Files) -> tuple[Record, ...]:
    """Return every change of this location that is not forgotten, oldest first."""
    found = [read_named(files, name) for name in files.level(FOLDER).files if is_record(name)]
    return tuple(sorted(found, key=lambda record: record.number))


def is_record(name: str) -> bool:
    """Whether a file in the journal's folder describes a change, by its name."""
    return name.endswith(".json") and not name.startswith(".")


def read_named(files: Files, name: str) -> Record:
    return _parse(files, f"{FOLDER}/{name}")


def read_record(files: Files, plan: Plan) -> Record | None:
    if f"{plan.id}.json" not in files.level(FOLDER).files:
        return None
    return _parse(files, path_of(plan))


def _parse(files: Files, path: str) -> Record:
    data = files.read(RelativePath(path))
    try:
        value = json.loads(data)
        return Record(
            plan_from_json(value["plan"], path),
            Stage(value["stage"]),
            int(value["number"]),
            str(value["after"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise MalformedFile(
            f"{files.root}/{path}: not a journal",
            shown(str(error)),
            "Only floodmark writes there: restore the file, or remove it if the change that "
            "it describes no longer matters.",
        ) from None


def begin(files: WritableFiles, plan: Plan) -> Record:
    number = max((record.number for record in read_records(files)), default=0) + 1
    record = Record(plan, Stage.BEGUN, number)
    write_record(files, record)
    return record


def move(files: WritableFiles, record: Record, stage: Stage, after: str | None = None) -> Record:
    moved = replace(record, stage=stage, after=record.after if after is None else after)
    write_record(files, moved)
    return moved


def begun(files: Files) -> Record:
    """Return the change that stopped midway."""
    for record in _standing(files):
        if record.stage is Stage.UNDOING:
            raise unfinished(files, record)
        return record
    raise NoAnswer(
        f"{files.root}: no change stopped midway here",
        "Every change in this journal was finished or taken back.",
        "There is nothing to resume.",
    )


def refuse_unfinished(files: Files, apart_from: Plan | None = None) -> None:
    for record in _standing(files):
        if apart_from is None or record.plan.id != apart_from.id:
            raise unfinished(files, record)


def _standing(files: Files) -> list[Record]:
    """Return changes that stopped midway, and a finished change whose block is still there."""
    records = read_records(files)
    last = [one for one in records[-1:] if one.stage is Stage.FINISHED]
    return [
        *(one for one in records if one.unfinished),
        *(one for one in last if is_blocked(files, one.plan)),
    ]


def unfinished(files: Files, record: Record) -> Unfinished:
    """Return the error: the user must resume or undo an earlier change; no verb does that."""
    undo = f"Take it back: floodmark undo {shlex.quote(files.root)} --execute"
    resume = f"Go on with it: floodmark apply --resume {shlex.quote(files.root)} --execute"
    begun = record.stage is not Stage.UNDOING
    return Unfinished(
        f"{files.root}: an earlier `{record.plan.verb}`"
        + (" stopped midway" if begun else " was being taken back, and that stopped midway"),
        f"It is written down in {path_of(record.plan)}; no query can start until it is "
        "finished or taken back.",
        f"{resume}\n{undo}\nEither shows its plan first, without --execute." if begun else undo,
    )


def block_path(number: int) -> RelativePath:
    return RelativePath(f"{OFFSETS}/{number}")


def block(files: WritableFiles, plan: Plan) -> None:
    """Keep Spark from starting, and a query that still runs from planning its next batch."""
    path = block_path(plan.block)
    text = (
        f"{BLOCK.decode()}an unfinished `{plan.verb}` ({plan.id}) holds this checkpoint. Finish "
        "it by repeating the command, or take it back: floodmark undo"
    )
    if files.create(RelativePath(path), text.encode()) or _is_ours(files, path, plan):
        return
    raise StalePlan(
        f"{files.root}/{path} exists now, and did not when the plan was made",
        "A query has planned its next batch meanwhile.",
        "Stop the query, then plan again.",
    )


def is_blocked(files: Files, plan: Plan) -> bool:
    return _is_ours(files, block_path(plan.block), plan)


def unblock(files: WritableFiles, plan: Plan) -> None:
    if is_blocked(files, plan):
        files.delete([block_path(plan.block)])


def _is_ours(files: Files, path: str, plan: Plan) -> bool:
    try:
        data = files.read(RelativePath(path))
    except FileGone:
        return False
    return data.startswith(BLOCK) and f"({plan.id})".encode() in data


def blocks(files: Files) -> frozenset[str]:
    """Return the paths of blocking entries, from this plan or another one."""
    numbers = sorted(
        batch for name in files.level(OFFSETS).files if (batch := batch_id(name)) is not None
    )
    newest = [f"{OFFSETS}/{batch}" for batch in numbers[-2:]]
    found = files.read_many(map(RelativePath, newest))
    for data in found.values():
        if isinstance(data, CannotRead) and data.may_come:
            raise data  # it may be a block
    return frozenset(
        path for path, data in found.items() if isinstance(data, bytes) and data.startswith(BLOCK)
    )
