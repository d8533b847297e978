"""`_floodmark/starts/<n>.json`: what each start of a query ran with.

Spark keeps neither code nor plan nor sink in a checkpoint; later judgements read
them here. Spark ignores the folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from floodmark.checkpoint.layout import NOTES, batch_id
from floodmark.checkpoint.outline import PlanNode
from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files
from floodmark.wire import dumps

FOLDER = f"{NOTES}/starts"
KEPT = 100
VERSION = 1


@dataclass(frozen=True)
class SourceNote:
    kind: str
    options: Mapping[str, str]
    description: str
    schema_ddl: str
    name: str | None = None


@dataclass(frozen=True)
class StartNote:
    """One start. Options, settings and parameters stand here as `redaction` gives them."""

    pipeline: str
    application: str | None
    code_fingerprint: str | None
    parameters: Mapping[str, Any]
    query_id: str
    run_id: str
    query_name: str | None
    spark_version: str
    java_version: str
    connectors: Mapping[str, str]
    master: str
    sources: tuple[SourceNote, ...]
    sink: str
    sink_options: Mapping[str, str]
    output_mode: str
    trigger: str
    schema_json: str
    plan: str
    conf: Mapping[str, str]
    host: str
    pid: int
    nodes: tuple[PlanNode, ...] = ()
    """The plan's steps, so that a later start can be compared with this one."""
    next_batch: int | None = None
    """The first batch that this start ran."""
    salt: str = ""
    """What the digests of hidden values were made with."""
    started_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    floodmark: str = "start-note"
    version: int = VERSION


def write_note(files: Files, note: StartNote) -> str:
    """Adds the note; the oldest ones go once there are many."""
    numbers = note_numbers(files)
    path = f"{FOLDER}/{(numbers[-1] if numbers else 0) + 1}.json"
    files.write(path, dumps(note).encode())
    files.delete(f"{FOLDER}/{number}.json" for number in numbers[: 1 - KEPT])
    return path


def note_numbers(files: Files) -> list[int]:
    names = (name.removesuffix(".json") for name in files.level(FOLDER).files)
    return sorted(number for name in names if (number := batch_id(name)) is not None)


def acting_note(files: Files, committed: int | None) -> dict[str, Any] | None:
    """The newest start that has committed a batch, as JSON data: the state comes from it.

    A start that failed before has left its note and nothing else. None where floodmark
    never started this query.
    """
    first = None
    for note in _notes(files):
        first = first or note
        begun = note.get("next_batch")
        if not isinstance(begun, int) or (committed is not None and committed >= begun):
            return note
    return first


def _notes(files: Files) -> Iterator[dict[str, Any]]:
    for number in reversed(note_numbers(files)):
        try:
            value = json.loads(files.read(f"{FOLDER}/{number}.json"))
        except (FloodmarkError, ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value.get("floodmark") == "start-note":
            yield value
