"""The commands that every damaged place is given to: all verbs that need no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fuzz_places import CHECKPOINT, NEW, PLAN, REPO, Template

# {cp}, {new}, {repo} and {plan} are the places of the case.
_READING = (
    "inspect {cp}",
    "inspect {cp} --json",
    "batches {cp}",
    "batches {cp} --json --last 2",
    "offsets {cp}",
    "offsets {cp} --starting-offsets",
    "offsets {cp} --batch 1 --json",
    "offsets {cp} --at 2026-11-15T10:00:00Z",
    "files {cp}",
    "files {cp} --json",
    "state {cp}",
    "state {cp} --json --limit 5",
    "state {cp} --stats",
    "state {cp} --changes 0..1",
    "state {cp} --batch 0",
    'state {cp} --key {{"customerId":"c1"}}',
    "state {cp} --operator 1",
    "state {cp} --store left",
    "diff {cp} --batches 0..1",
    "diff {cp} --batches 0..1 --state --json",
    "diff {cp} {new}",
    "scan {place}",
    "scan {cp} --json",
    "doctor {cp}",
    "doctor {cp} --json",
    "doctor {cp} --read-data",
    "doctor {cp} --read-data-subset 30%",
    "doctor {cp} --sources",
    "lag {cp}",
    "lag {cp} --json",
    "watch {cp} --once",
    "outline {cp}",
    "lint {cp}",
    "explain offset-gap",
)
_CHANGING = (
    "upgrade {cp} {new}",
    "upgrade {cp} {new} --new-identity --restart-numbering",
    "upgrade {cp} {new} --without-state --drop-in-flight",
    "upgrade {cp} {new} --read-data",
    "upgrade {cp} {new} --from-batch 0",
    "upgrade {cp} {new} --map-topic orders=other",
    "rewind {cp} --to-batch 0 --accept out-of-reach",
    "rewind {cp} --to-batch 1 --keep-identity --accept out-of-reach",
    "rewind {cp} --to-time 2026-11-15T10:00:00Z",
    "rewind {cp} --to-offsets {plan}",
    "rewind {cp} --to-batch 1 --read-data --accept out-of-reach",
    "copy {cp} {new}",
    "copy {cp} {new} --new-identity --read-data",
    "copy {cp} {new} --rehome /tmp=/elsewhere",
    "backup {cp} {repo}",
    "backup {cp} {repo} --keep-last 1",
    "repartition {cp} {new} --partitions 3",
    "convert {cp} {new} --provider rocksdb",
    "convert {cp} {new} --provider hdfs",
    "convert {cp} {new} --name 0=orders",
    "convert {cp} {new} --name 0=orders --name 1=payments --provider rocksdb",
    "compact {cp}",
    "compact {cp} --keep 1",
    "repair {cp}",
    "repair {cp} --read-data --accept repeats --accept changed-files --accept unchanged-query",
    "undo {cp}",
    "forget {cp}",
    "apply --resume {cp}",
)
_REPOSITORY = (
    "backup --list {repo}",
    "backup --check {repo}",
    "restore {repo} {new}",
    "restore {repo} {cp}",
    "restore {repo} {cp} --accept another-query --read-data",
    "repair {cp} --from-backup {repo}",
    "backup {cp} {repo}",
    "backup {cp} {repo} --keep-last 1",
)
_HISTORY = (
    "apply --resume {cp}",
    "apply --resume {cp} --from {cp} --sink {new}",
    "undo {cp}",
    "forget {cp}",
    "rewind {cp} --to-batch 0 --accept out-of-reach",
    "compact {cp}",
    "repair {cp}",
    "inspect {cp}",
    "doctor {cp}",
    "upgrade {cp} {new}",
    "copy {cp} {new} --rehome /a=/b",
)
EVERY = (*_READING, *_CHANGING, *_REPOSITORY, *_HISTORY, "apply {plan}")
_IN_PLACE = ("rewind", "compact", "repair", "undo")
_WITHOUT_EXECUTE = ("backup --list", "backup --check")


@dataclass(frozen=True)
class Command:
    arguments: tuple[str, ...]
    changes: bool
    """It was told to change something."""


def draw(rng: Random, template: Template, place: str) -> list[Command]:
    """Two that look, and one that is told to go on: it comes last."""
    pool = (*_READING, *_CHANGING)
    if template.has_repo:
        pool = (*_REPOSITORY, *rng.sample(pool, 4))
    elif any("/_floodmark/" in path for path in template.tree):
        pool = (*_HISTORY, *rng.sample(pool, 8))
    chosen = [of_place(rng.choice(pool), place, False) for _ in range(2)]
    if template.has_plan:
        return [*chosen, of_place("apply {plan}", place, True)]
    changing = [text for text in pool if text in (*_CHANGING, *_REPOSITORY, *_HISTORY)]
    return [*chosen, of_place(rng.choice(changing), place, True)]


def of_place(text: str, place: str, execute: bool) -> Command:
    names = {
        "place": place,
        "cp": f"{place}/{CHECKPOINT}",
        "new": f"{place}/{NEW}",
        "repo": f"{place}/{REPO}",
        "plan": f"{place}/{PLAN}",
    }
    arguments = tuple(part.format(**names) for part in text.split(" "))
    if text == "apply {plan}":
        return Command(arguments, True)
    if text in _READING or text.startswith(_WITHOUT_EXECUTE) or not execute:
        return Command(arguments, False)
    if text.startswith(_IN_PLACE):
        arguments = (*arguments, "--accept", "maybe-running")
    return Command((*arguments, "--execute"), True)
