"""Builds and executes the plan of `compact`."""

from __future__ import annotations

from dataclasses import replace

from floodmark.changes.carry.origin import open_origin
from floodmark.changes.plan import seal
from floodmark.changes.planners.compact import plan_compact, retained
from floodmark.changes.verbs.carrying_out import (
    Carrying,
    Change,
    absolute,
    place_of_sink,
    unnamed_sink,
)
from floodmark.changes.verbs.repair import carried
from floodmark.storage.files import open_files
from floodmark.storage.starts import latest_note


def compact(path: str, keep: int | None, sink: str | None, carrying: Carrying) -> Change:
    location = absolute(path)
    files = open_files(location, carrying.storage)
    origin = open_origin(files, location)
    note = latest_note(files)
    place = place_of_sink(sink, carrying) if sink is not None else None
    number = retained(keep, note)
    options = {"keep": number, "sink": place[0] if place else None}
    plan = plan_compact(origin, number, options, place)
    unnamed = unnamed_sink(origin) if sink is None else ()
    return carried(seal(replace(plan, notes=(*unnamed, *plan.notes))), carrying)
