"""Finds the kind of a source from what stands outside its offset: user, note, code. Pure.

The offsets of Kafka and of Event Hubs have the same form. The user's word counts most, then the
note of the last start, then the application's reader. If a note and the offset contradict each
other, only the user can decide.
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
    "The offset has spaces, which a source written in Python puts there and Kafka never does; "
    "but sources/{0}/0 begins as Kafka's. If somebody has edited the offset, give --source-kind "
    "{0}=kafka or --source-kind {0}=eventhubs; otherwise give --source-kind {0}=python."
)


def noted_kinds(entry: OffsetEntry, note: Mapping[str, Any]) -> dict[str, str]:
    """Return the noted kinds of sources whose offset several kinds can write."""
    noted = note.get("sources")
    sources = noted if isinstance(noted, list) else []
    listed: list[dict[str, Any]] = [one if isinstance(one, dict) else {} for one in sources]
    named = {str(one["name"]): one for one in listed if one.get("name")}
    if not named and len(listed) != len(entry.offsets):
        return {}  # another number of sources: the note is of other code
    found = {}
    for at, (source, text) in enumerate(entry.offsets):
        one = named.get(source, {}) if named else listed[at]
        said = str(one.get("kind") or "").strip().lower()
        with suppress(MalformedFile):
            read = read_source_offset(source, text)
            own = read.kind
            # An offset with spaces looks like Python's; somebody may also have edited it.
            edited = said_kind(said) is not None and in_form_of(read.offset, said)
            if said and (is_alike(own) or edited):
                found[source] = said
            elif kind_of_format(said) is not None and not kind_named(own).reads_as(said):
                return {}  # a note of other code: no kind writes the offsets of another
    return found


def with_said_kinds(checkpoint: Checkpoint, said: Mapping[str, str]) -> Checkpoint:
    """Return the checkpoint with the kinds that the user gave: source → kind."""
    sources = {source.id: source for source in checkpoint.sources}
    kinds = dict(checkpoint.said_kinds)
    for source, name in said.items():
        kind = said_kind(name)
        if kind is None:
            raise WrongUse(
                f"--source-kind {source}={name}: only kafka, eventhubs and python look alike",
                do="Name one of these three. The offsets show every other kind.",
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
                "Leave the option out: the offset shows the kind.",
            )
        kinds[source] = kind
    disputed = {one: why for one, why in checkpoint.disputed.items() if one not in said}
    return replace(checkpoint, said_kinds=kinds, disputed=disputed)


def with_code_kinds(checkpoint: Checkpoint, kinds: Sequence[str]) -> Checkpoint:
    """Return the checkpoint with the kinds of the application's sources, in plan order.

    If the number of sources differs from the checkpoint's, it is other code, which says nothing
    about them.
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
    """Refuse if a source's kind is disputed: the user must choose, because the answers differ."""
    for source, why in checkpoint.disputed.items():
        raise WrongUse(
            f"{verb}: the kind of source {source} is not clear",
            why,
            "Name its kind.",
        )


def with_disputes(checkpoint: Checkpoint, noted: Mapping[str, str]) -> Checkpoint:
    """Mark the sources whose note, offset and `sources/<id>/0` contradict each other."""
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
    """Yield a warning for each source kind that a new checkpoint does not keep.

    Somebody said it, and neither the offset nor a note in the new checkpoint shows it.
    """
    own = {one.id: one.kind for one in replace(checkpoint, said_kinds={}).sources}
    for source, kind in checkpoint.said_kinds.items():
        if source in own and own[source] != kind:
            yield (
                f"Source {source} is {kind}, as you, a note or the code said. Its offset has the "
                f"form of {own[source]}. The new checkpoint does not keep its kind until "
                "`floodmark run` has noted a start there. Until then give --source-kind "
                f"{source}={kind} again."
            )


def settled_kinds(checkpoint: Checkpoint, noted: Mapping[str, str]) -> Checkpoint:
    """Return the checkpoint with the noted kinds, or with the reason why a kind cannot be."""
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
            f"The note of the last start says {shorten(noted)}, but the offset has the form of "
            f"Kafka and of Event Hubs. If the source is one of them, give --source-kind "
            f"{source}=kafka or --source-kind {source}=eventhubs."
        )
    return (
        f"The note of the last start says {noted}, but the offset has a number that only {own} "
        f"writes. Only you can decide: give --source-kind {source}={noted} or --source-kind "
        f"{source}={own}."
    )
