"""`compact` from what a user asks to a plan, and from the plan to what is done."""

from __future__ import annotations

from floodmark.changes.compact import plan_compact, retained
from floodmark.changes.mends.sink import known_sink
from floodmark.changes.origin import latest_note, open_origin
from floodmark.changes.plan import seal
from floodmark.changes.repairing import begun_before, carried
from floodmark.changes.verbs import Carrying, Change, absolute
from floodmark.storage.files import open_files


def compact(path: str, keep: int | None, sink: str | None, carrying: Carrying) -> Change:
    location = absolute(path)
    files = open_files(location, carrying.storage)
    begun = begun_before(files, "compact")
    if begun is not None:
        return carried(begun, carrying)
    origin = open_origin(files, location)
    note = latest_note(files)
    given = None
    if sink is not None:
        given = (absolute(sink), open_files(absolute(sink), carrying.storage))
    known = known_sink(note, given, lambda place: open_files(place, carrying.storage))
    place = None
    if known.kind == "files" and known.place is not None and known.files is not None:
        place = (absolute(known.place), known.files)
    number = retained(keep, note)
    options = {"keep": number, "sink": place[0] if place else None}
    return carried(seal(plan_compact(origin, number, options, place)), carrying)
