"""Plans `convert --name`: a new checkpoint that knows its sources by name.

Spark 4.3 names sources only in a new checkpoint. With names its offset log is of version 2, a
source's own files lie in `sources/<name>/`, and the settings say that sources may change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.rehome import renamed_schema_log
from floodmark.changes.plan import Plan
from floodmark.changes.plan.steps import Step, content_of, write
from floodmark.checkpoint.conf_keys import SOURCE_EVOLUTION
from floodmark.checkpoint.layout import OFFSETS, SOURCES, batch_id, source_ids
from floodmark.checkpoint.offsets import named_entry, parse_offsets, render_offsets
from floodmark.checkpoint.text import shorten
from floodmark.connectors.delta.offset import is_schema_log
from floodmark.errors import NoAnswer, NotCarried, WrongUse

_NAME = re.compile(r"[A-Za-z0-9_]{1,200}")
_SPELLED = "Write --name ID=NAME, such as --name 0=orders; `floodmark inspect CP` shows the ids."


def plan_named(origin: Origin, base: Plan, names: Mapping[str, str]) -> Plan:
    """Add names of sources to `base`, a plan that carries the stream into a new checkpoint.

    `names` has the name for each source's id in the checkpoint.
    """
    known = _known_sources(origin)
    _require_names(names, known)
    every = _every_name(origin, names, known)
    _refuse_shared_folders(origin, every)
    strange = _strange_folders(origin, every)
    if all(source == name for source, name in every.items()) and _has_names(origin):
        raise NoAnswer(
            f"{origin.location}: its sources have these names already",
            "There is nothing to convert.",
            "`floodmark copy` makes a copy of it.",
        )
    return replace(
        base,
        verb="convert",
        title=_title(base),
        steps=tuple(
            _named_step(origin, step, every)
            for step in base.steps
            if not step.path.startswith(tuple(f"{SOURCES}/{one}/" for one in strange))
        ),
        options={
            "provider": None,
            "state_format": None,
            **(base.options if base.verb == "convert" else {}),
            "name": dict(sorted(names.items())),
        },
        notes=(*_notes(origin, every), *base.notes),
    )


def _title(base: Plan) -> str:
    return (
        f"{base.title}, and names for its sources"
        if base.verb == "convert"
        else "A new checkpoint that knows its sources by name"
    )


def _has_names(origin: Origin) -> bool:
    return origin.checkpoint.conf.get(SOURCE_EVOLUTION, "").lower() == "true"


def _known_sources(origin: Origin) -> tuple[str, ...]:
    """Return the present ids; in version 2 a source without offset has no line in the log."""
    checkpoint = origin.checkpoint
    entry = checkpoint.latest_entry
    found = [source for source, _ in entry.offsets] if entry is not None else []
    if entry is not None and entry.version > 1:
        found += [one for one in source_ids(checkpoint.files) if one not in found]
    return tuple(sorted(found, key=lambda one: (batch_id(one) is None, batch_id(one), one)))


def _require_names(names: Mapping[str, str], known: tuple[str, ...]) -> None:
    for source, name in names.items():
        if source not in known:
            raise WrongUse(
                f"--name {shorten(source)}={shorten(name)}: the checkpoint has no source "
                f"{shorten(source)}",
                f"Its sources are {', '.join(known)}.",
                _SPELLED,
            )
        if not _NAME.fullmatch(name):
            raise WrongUse(
                f"--name {source}={shorten(name)}: Spark takes no such name",
                "A name has ASCII letters, digits and underscores, and nothing else.",
                _SPELLED,
            )


def _every_name(origin: Origin, names: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    unnamed = [source for source in known if source not in names]
    if unnamed and not _has_names(origin):
        kinds = {one.id: one.kind for one in origin.checkpoint.sources}
        words = ", ".join(f"{one} ({kinds.get(one, 'no offset yet')})" for one in unnamed)
        raise WrongUse(
            f"--name: no name for source {words}",
            "With names for sources, Spark wants one for every source of the query.",
            "Add " + " ".join(f"--name {one}=NAME" for one in unnamed) + ".",
        )
    every = {source: names.get(source, source) for source in known}
    doubled = sorted(name for name, count in Counter(every.values()).items() if count > 1)
    if doubled:
        raise WrongUse(
            f"--name: {', '.join(doubled)} would be the name of more than one source",
            "Spark wants another name for each source.",
            _SPELLED,
        )
    return every


def _refuse_shared_folders(origin: Origin, every: Mapping[str, str]) -> None:
    for source in every:
        twin = origin.checkpoint.twin_of(source)
        if twin is not None:
            raise NotCarried(
                f"{origin.location}: sources {twin} and {source} are one stream, which the query "
                "reads twice",
                "Both share one folder of the checkpoint, and Spark takes no name twice.",
                "Read the stream once in the code, or begin with an empty checkpoint.",
            )


def _strange_folders(origin: Origin, every: Mapping[str, str]) -> frozenset[str]:
    """Return folders with a new source's name that belong to no source: a start left them.

    Spark makes these folders before it refuses the names.
    """
    there = set(source_ids(origin.checkpoint.files))
    return frozenset(
        name for source, name in every.items() if name in there - set(every) and source in there
    )


def _named_step(origin: Origin, step: Step, every: Mapping[str, str]) -> Step:
    folder, _, rest = step.path.partition("/")
    if folder == OFFSETS:
        entry = parse_offsets(content_of(step, origin.read))
        if entry.metadata is None:
            raise NotCarried(
                f"{step.path} has no settings, as continuous processing writes it",
                "An offset log with names needs them.",
                "Run the query once with a trigger of micro-batches, then convert.",
            )
        return write(
            step.path,
            render_offsets(named_entry(entry, every)),
            ", ".join(part for part in (step.why, "with names for sources") if part),
        )
    source, _, inside = rest.partition("/")
    if folder != SOURCES or source not in every:
        return step
    path = f"{SOURCES}/{every[source]}/{inside}"
    if is_schema_log(step.path):
        data = renamed_schema_log(content_of(step, origin.read), every[source])
        return write(path, data, step.why)
    return replace(step, path=path)


def _notes(origin: Origin, every: Mapping[str, str]) -> tuple[str, ...]:
    kinds = {one.id: one.kind for one in origin.checkpoint.sources}
    return (
        *(
            f"Source {source} ({kinds.get(source, 'no offset yet')}) is {name} now: "
            f'spark.readStream.name("{name}").'
            for source, name in every.items()
        ),
        f"Start it with Spark 4.3 or later and {SOURCE_EVOLUTION}=true, and give every source of "
        "the code its name: from then on sources can be added, removed and reordered.",
    )
