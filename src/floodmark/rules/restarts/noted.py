"""The newest note of a start, from JSON; what an older release did not note is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.outline import PlanNode, SourceOutline
from floodmark.redaction import Redaction, noted_conf, noted_options
from floodmark.rules.restarts.comparison import LastStart


def last_start(note: Mapping[str, Any] | None) -> LastStart | None:
    if note is None:
        return None
    salt = note.get("salt")
    return LastStart(
        tuple(_source(one) for one in _list(note.get("sources"))),
        str(note.get("sink", "")),
        noted_options(_texts(note.get("sink_options"))),
        str(note.get("output_mode", "")),
        str(note.get("trigger", "")),
        str(note.get("schema_json", "")),
        str(note.get("spark_version", "")),
        noted_conf(_texts(note.get("conf"))),
        note.get("code_fingerprint") if isinstance(note.get("code_fingerprint"), str) else None,
        tuple(_node(one) for one in _list(note["nodes"])) if "nodes" in note else None,
        Redaction(salt) if isinstance(salt, str) and salt else Redaction.fresh(),
    )


def _source(fields: Mapping[str, Any]) -> SourceOutline:
    name = fields.get("name")
    return SourceOutline(
        str(fields.get("kind", "")),
        noted_options(_texts(fields.get("options"))),
        str(fields.get("schema_ddl", "")),
        name if isinstance(name, str) else None,
    )


def _node(fields: Mapping[str, Any]) -> PlanNode:
    details = fields.get("details")
    return PlanNode(
        str(fields.get("kind", "")),
        details if isinstance(details, dict) else {},
        fields.get("streaming") is not False,
    )


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}
