"""Writes `_floodmark/starts/<n>.json`: what each start of a query ran with.

Spark stores neither code nor plan nor sink in a checkpoint; later judgements read them from
these notes. Spark ignores the folder.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from floodmark.checkpoint.layout import STARTS
from floodmark.checkpoint.outline import Outline
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.start_note import KIND, packed_tree
from floodmark.engine.code.query import Source
from floodmark.redaction import Redaction
from floodmark.secret_text import redacted
from floodmark.storage.files import WritableFiles
from floodmark.storage.last_start import note_numbers
from floodmark.wire import dumps

KEPT = 100
VERSION = 1


@dataclass(frozen=True)
class StartNote:
    """One start; its options, settings and parameters are as `redaction` returns them."""

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
    sources: tuple[Source, ...]
    sink: str
    sink_options: Mapping[str, str]
    output_mode: str
    trigger: str
    schema_json: str
    conf: Mapping[str, str]
    host: str
    pid: int
    tree: dict[str, object] | str
    """The whole plan, with which later code can be compared; its texts are hashed."""
    next_batch: int | None = None
    """The first batch that this start ran."""
    salt: str = ""
    """The salt of the digests of hidden values."""
    remote_plan: str | None = None
    """A digest of the query as a client of Spark Connect sends it; such a start has no tree."""
    started_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    floodmark: str = KIND
    version: int = VERSION


def source_notes(sources: Iterable[Source], redaction: Redaction) -> tuple[Source, ...]:
    return tuple(
        replace(
            one,
            options=redaction.options(one.options),
            description=redacted(one.description),
        )
        for one in sources
    )


def write_note(files: WritableFiles, note: StartNote) -> str:
    """Write the note, and remove the oldest ones where there are many."""
    return add_note(files, dumps(note).encode())


def add_note(files: WritableFiles, note: bytes) -> str:
    numbers = note_numbers(files)
    path = f"{STARTS}/{(numbers[-1] if numbers else 0) + 1}.json"
    files.write(RelativePath(path), note)
    files.delete(RelativePath(f"{STARTS}/{number}.json") for number in numbers[: 1 - KEPT])
    return path


def note_of(outline: Outline, application: str, next_batch: int, redaction: Redaction) -> bytes:
    """Return the note of a start that did not happen: a change made a checkpoint for this code."""
    note = StartNote(
        "application",
        application,
        None,
        {},
        "",
        "",
        None,
        outline.spark_version,
        "",
        {},
        "",
        tuple(
            Source(one.kind, one.options, "", one.schema_ddl, one.name) for one in outline.sources
        ),
        outline.sink,
        outline.sink_options,
        outline.output_mode,
        outline.trigger,
        outline.schema_json,
        outline.conf,
        "",
        0,
        packed_tree(outline.tree.hidden(redaction.salt)),
        next_batch,
        redaction.salt,
        None,
        0,
    )
    return dumps(note).encode()
