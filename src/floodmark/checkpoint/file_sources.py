"""Finds the file sources of a batch, from all that shows their kind. Pure.

`repair` writes a new list of seen files, so an offset form that other sources can write is not
enough: a source written in Python may also count in `logOffset`, and keeps no list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import SOURCES
from floodmark.connectors.registry import about, kind_of_format, recognise
from floodmark.connectors.source import SourceOffset, Sureness, Traces


def file_sources(evidence: Evidence, batch: int) -> Iterator[SourceOffset]:
    """Yield the sources that keep a list of files, with their positions after a batch."""
    sources = evidence.positions.get(batch, ())
    for at, source in enumerate(sources):
        if not about(source).lists_files or source.offset is None:
            continue
        initial = evidence.checkpoint.initial.get(source.id)
        found = recognise(Traces(source.offset, source.text, initial))
        has_list = any(
            file.path.startswith(f"{SOURCES}/{source.id}/") for file in evidence.checkpoint.files
        )
        if found is None or found.sureness is not Sureness.CERTAIN:
            continue
        # A bare number is an entry only beside a list, which can be an earlier source's.
        tells = has_list and type(source.offset) is not int
        if tells or not _is_of_others(_noted_kind(evidence, source.id, at, len(sources))):
            yield source


def _noted_kind(evidence: Evidence, source: str, at: int, of: int) -> str:
    """Return the noted kind of a source, which is number `at` of `of`."""
    note: Mapping[str, Any] = evidence.starts[-1].note if evidence.starts else {}
    listed = note.get("sources")
    noted = (
        [one if isinstance(one, dict) else {} for one in listed] if isinstance(listed, list) else []
    )
    named = next((one for one in noted if one.get("name") == source), None)
    if named is None and len(noted) == of:  # otherwise the note is of other code
        named = noted[at]
    return str((named or {}).get("kind") or "").strip().lower()


def _is_of_others(noted: str) -> bool:
    """Whether the last start read something other than files there."""
    if not noted:
        return False
    kind = kind_of_format(noted)
    return kind is None or not kind.lists_files
