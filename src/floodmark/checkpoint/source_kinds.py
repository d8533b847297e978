"""What a source is, by all that stands outside of its offset: the user, a note, the code. Pure.

The offsets of Kafka and of Event Hubs have the same form. The user's word counts most, then the
note of the last start, then the application's reader. Where a note and the offset contradict each
other, nobody but the user can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import OffsetEntry
from floodmark.checkpoint.text import shorten
from floodmark.connectors.registry import (
    can_be,
    has_form_of_several,
    in_form_of,
    is_alike,
    kind_named,
    kind_of_format,
    look_alikes,
    read_source_offset,
    said_kind,
)
from floodmark.connectors.source import UNKNOWN, SourceOffset, Traces
from floodmark.errors import MalformedFile, WrongUse

_EDITED = (
    "The offset has spaces, as a source written in Python puts them and Kafka never does, and "
    "sources/{0}/0 begins as Kafka's. If somebody has edited it: --source-kind {0}=kafka, or "
    "--source-kind {0}=eventhubs; else --source-kind {0}=python."
)


def noted_kinds(entry: OffsetEntry, note: Mapping[str, Any]) -> dict[str, str]:
    """What the note of a start says of sources that could be of several kinds."""
    noted = note.get("sources")
    sources = noted if isinstance(noted, list) else []
    listed: list[dict[str, Any]] = [one if isinstance(one, dict) else {} for one in sources]
    named = {str(one["name"]): one for one in listed if one.get("name")}
    if not named and len(listed) != len(entry.offsets):
        return {}  # another number of sources is other code, which tells nothing of these
    found = {}
    for at, (source, text) in enumerate(entry.offsets):
        one = named.get(source, {}) if named else listed[at]
        said = str(one.get("kind") or "").strip().lower()
        with suppress(MalformedFile):
            read = read_source_offset(source, text)
            own = read.kind
            # With spaces it looks like Python's, and may be one that somebody has edited.
            edited = said_kind(said) is not None and in_form_of(read.offset, said)
            if said and (is_alike(own) or edited):
                found[source] = said
            elif kind_of_format(said) is not None and not kind_named(own).reads_as(said):
                return {}  # the note of other code: no kind writes another's offsets
    return found


def with_said_kinds(checkpoint: Checkpoint, said: Mapping[str, str]) -> Checkpoint:
    """`said` by the user: source → kind."""
    sources = {source.id: source for source in checkpoint.sources}
    kinds = dict(checkpoint.said_kinds)
    for source, name in said.items():
        kind = said_kind(name)
        if kind is None:
            raise WrongUse(
                f"--source-kind {source}={name}: only kafka, eventhubs and python look alike",
                do="Name one of these three; every other kind is told by its offsets.",
            )
        if source not in sources:
            raise WrongUse(
                f"--source-kind {source}={name}: there is no source {source!r}",
                f"The checkpoint has sources: {', '.join(sources) or 'none'}.",
                "Name one of them; `floodmark inspect CP` shows them.",
            )
        if not can_be(kind, sources[source].offset):
            raise WrongUse(
                f"--source-kind {source}={name}: the offset is not one of {kind}",
                f"The checkpoint has {shorten(sources[source].text or '', 90)}.",
                "Leave the option out: the offset tells its kind.",
            )
        kinds[source] = kind
    disputed = {one: why for one, why in checkpoint.disputed.items() if one not in said}
    return replace(checkpoint, said_kinds=kinds, disputed=disputed)


def with_code_kinds(checkpoint: Checkpoint, kinds: Sequence[str]) -> Checkpoint:
    """`kinds` of the application's sources, in the order of its plan.

    Another number of sources than the checkpoint's is other code, which tells nothing of them.
    """
    sources = checkpoint.sources
    if len(kinds) != len(sources):
        return checkpoint
    told = {
        source.id: said
        for source, kind in zip(sources, kinds, strict=True)
        if source.id not in checkpoint.said_kinds
        and look_alikes(source.kind)
        and (said := said_kind(kind)) is not None
    }
    return replace(checkpoint, said_kinds={**checkpoint.said_kinds, **told}) if told else checkpoint


def refuse_disputed(checkpoint: Checkpoint, verb: str) -> None:
    """Where the two kinds would give different answers, the user is asked."""
    for source, why in checkpoint.disputed.items():
        raise WrongUse(
            f"{verb}: nothing tells which kind source {source} is", why, "Name its kind."
        )


def with_disputes(checkpoint: Checkpoint, noted: Mapping[str, str]) -> Checkpoint:
    """With sources of which a note, the offset and `sources/<id>/0` say different things."""
    settled = settled_kinds(checkpoint, noted) if noted else checkpoint
    edited = {
        one.id: _EDITED.format(one.id)
        for one in checkpoint.sources
        if one.id not in settled.said_kinds and _may_be_edited(one, checkpoint.initial.get(one.id))
    }
    return replace(settled, disputed={**edited, **settled.disputed}) if edited else settled


def _may_be_edited(source: SourceOffset, initial: bytes | None) -> bool:
    traces = Traces(source.offset, source.text, initial)
    return traces.may_be_pythons and traces.has_lead_byte and has_form_of_several(source.offset)


def unkept_kinds(checkpoint: Checkpoint) -> Iterator[str]:
    """Of a new checkpoint: what is said of a source, and neither its offset nor a note tells."""
    own = {one.id: one.kind for one in replace(checkpoint, said_kinds={}).sources}
    for source, kind in checkpoint.said_kinds.items():
        if source in own and own[source] != kind:
            yield (
                f"Source {source} is {kind}, as somebody has said; its offset has the form of "
                f"{own[source]}. The new checkpoint does not keep that until `floodmark run` has "
                f"noted a start there: name it again, --source-kind {source}={kind}."
            )


def settled_kinds(checkpoint: Checkpoint, noted: Mapping[str, str]) -> Checkpoint:
    """With what a note says of its sources, or with the reason why that cannot be."""
    said, disputed = {}, {}
    own = {source.id: source.kind for source in checkpoint.sources}
    for source, kind in noted.items():
        mine = own.get(source, UNKNOWN)
        if mine == kind or kind in look_alikes(mine) or kind_named(mine).any_form:
            said[source] = kind
        else:
            disputed[source] = _dispute(source, own.get(source, UNKNOWN), kind)
    return replace(checkpoint, said_kinds=said, disputed=disputed)


def _dispute(source: str, own: str, noted: str) -> str:
    if said_kind(noted) is None:
        return (
            f"The note of the last start says {shorten(noted)}, and the offset has the form of "
            f"Kafka and of Event Hubs. If it is one of them: --source-kind {source}=kafka, or "
            f"--source-kind {source}=eventhubs."
        )
    return (
        f"The note of the last start says {noted}, and the offset has a number that only {own} "
        f"writes. Nobody but you can tell: --source-kind {source}={noted}, or --source-kind "
        f"{source}={own}."
    )
