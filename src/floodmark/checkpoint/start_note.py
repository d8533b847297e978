"""Reads what a start ran with (`_floodmark/starts/<n>.json`), and which start counts.

Spark keeps neither code nor plan nor sink in a checkpoint. Only this module decides what the last
start ran; `storage/last_start.py` reads the files for it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from floodmark.checkpoint.layout import batch_id
from floodmark.redaction import Redaction, noted_conf, noted_options

if TYPE_CHECKING:  # a checkpoint without notes needs none of it
    from floodmark.checkpoint.outline import SourceOutline
    from floodmark.checkpoint.plan.tree import PlanTree

KIND = "start-note"
_Source = TypeVar("_Source")
_PLAIN_AT_MOST = 16_384
_UNPACKED_AT_MOST = 64 << 20


@dataclass(frozen=True)
class StartedQuery(Generic[_Source]):
    """What a start says of its query, in a note as in an outline of new code."""

    sources: tuple[_Source, ...]
    sink: str
    sink_options: Mapping[str, str]
    """Keys in lower case."""
    output_mode: str
    trigger: str
    schema_json: str
    """The schema of the rows that the sink receives."""


@dataclass(frozen=True)
class LastStart(StartedQuery["SourceOutline"]):
    """The start that made the state in the checkpoint."""

    spark_version: str
    conf: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str | None = None
    tree: PlanTree | None = None
    """None in the notes of releases that kept no tree."""
    redaction: Redaction = field(default_factory=Redaction.fresh)
    """How the values of the note were hidden. New values are hidden in the same way to compare."""
    is_drawn: bool = False
    """Whether this Spark drew it from old code: then the Spark that ran it is not known."""


def acting(notes: Iterable[Mapping[str, Any]], committed: int | None) -> Mapping[str, Any] | None:
    """Return the newest note whose start has committed a batch: that start made the state.

    `notes` come newest first. A start that failed earlier has left a note and nothing else. If
    nothing is committed yet, the newest note counts.
    """
    for note in notes:
        begun = note.get("next_batch")
        if committed is None or not isinstance(begun, int) or committed >= begun:
            return note
    return None


def is_note(value: Any) -> bool:
    return isinstance(value, dict) and value.get("floodmark", KIND) == KIND


def last_start(note: Mapping[str, Any] | None) -> LastStart | None:
    if note is None:
        return None
    fingerprint, salt = note.get("code_fingerprint"), note.get("salt")
    return LastStart(
        tuple(_source(one) for one in _list(note.get("sources"))),
        str(note.get("sink", "")),
        noted_options(_texts(note.get("sink_options"))),
        str(note.get("output_mode", "")),
        str(note.get("trigger", "")),
        str(note.get("schema_json", "")),
        str(note.get("spark_version", "")),
        noted_conf(_texts(note.get("conf"))),
        fingerprint if isinstance(fingerprint, str) else None,
        unpacked_tree(note.get("tree")),
        Redaction(salt) if isinstance(salt, str) and salt else Redaction.fresh(),
    )


def packed_tree(tree: PlanTree) -> dict[str, object] | str:
    """Return the tree as a note keeps it: as JSON, or compressed if it is large."""
    from floodmark.checkpoint.plan.tree_json import tree_to_json

    plain = tree_to_json(tree)
    text = json.dumps(plain, separators=(",", ":"))
    if len(text) <= _PLAIN_AT_MOST:
        return plain
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked_tree(value: Any) -> PlanTree | None:
    if isinstance(value, str):
        try:
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(base64.b64decode(value, validate=True), _UNPACKED_AT_MOST)
            value = json.loads(text) if unpacker.eof else None
        except (ValueError, zlib.error, RecursionError):
            return None
    from floodmark.checkpoint.plan.tree_json import tree_from_json

    return tree_from_json(value)


def source_options(note: Mapping[str, Any] | None, source: str) -> dict[str, str]:
    """Return the reader options of a source, by its number or name; keys in lower case."""
    noted = (note or {}).get("sources")
    sources = noted if isinstance(noted, list) else []
    number = batch_id(source)
    if number is not None:
        chosen = sources[number] if number < len(sources) else None
    else:
        named = (one for one in sources if isinstance(one, dict) and one.get("name") == source)
        chosen = next(named, None)
    options = chosen.get("options") if isinstance(chosen, dict) else None
    return {key.lower(): value for key, value in _texts(options).items()}


def _source(fields: Mapping[str, Any]) -> SourceOutline:
    from floodmark.checkpoint.outline import SourceOutline

    name = fields.get("name")
    return SourceOutline(
        str(fields.get("kind", "")),
        noted_options(_texts(fields.get("options"))),
        str(fields.get("schema_ddl", "")),
        name if isinstance(name, str) else None,
    )


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}
