"""Reads Delta's offsets: a version of the table, and a file within it. Pure.

`{"sourceVersion":1,"reservoirId":…,"reservoirVersion":8,"index":-1,"isStartingVersion":false}`
(DeltaSourceOffset): the stream has read every earlier version, and the files of this version up to
the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.text import long_of, shorten
from floodmark.connectors.source import (
    Recognised,
    SourceKind,
    SourceOffset,
    StartOption,
    Traces,
    arrow,
    render_json,
)
from floodmark.errors import MalformedFile

# Delta's special places inside a version. -1 (and -100, as later releases hold it in
# memory) is before its first file; -20 and -19 stand at and right after a schema change.
BASE_INDEXES = frozenset({-1, -100})
_SCHEMA_CHANGES = {-20: " at a change of its schema", -19: " after a change of its schema"}
_NEWEST_DELTA_SOURCE = 3
_FORM = frozenset({"reservoirId", "reservoirVersion"})


TABLE_LOG = "_delta_log"
"""The folder of a table that tells its versions."""


@dataclass(frozen=True)
class DeltaOffset:
    reservoir_id: str
    reservoir_version: int
    index: int
    is_starting_version: bool
    source_version: int


class DeltaSource(SourceKind):
    name = "delta"
    unit = "versions"
    names_table = True
    start_files = ("*_schema_log_*",)
    asked_with = "--table PATH"
    can_be_asked = True
    tells_lag = True
    start_rules = (
        "delta-table-missing",
        "delta-table-replaced",
        "delta-version-gone",
        "delta-file-gone",
    )

    def recognise(self, traces: Traces) -> Recognised | None:
        if isinstance(traces.offset, dict) and traces.offset.keys() >= _FORM:
            return self.certain("the offset names the id and version of a table")
        return None

    def check_offset(self, offset: Any) -> None:
        if offset is not None:
            _is_known_form(offset)

    def explain(self, end: Any, start: Any) -> list[str]:
        return [arrow(_words(start), _words(end))]

    def reached(self, end: Any) -> str:
        return f"delta: version {end['reservoirVersion']}"

    def starting_option(self, source: SourceOffset) -> tuple[StartOption | None, str | None]:
        offset = parse_delta_offset(source.offset)
        if offset.is_starting_version:
            return None, (
                "The stream is still inside the table's first full snapshot. startingVersion "
                "cannot resume it; only a checkpoint can."
            )
        if offset.reservoir_version < 0:
            return None, "The offset has a negative number, which is no version of a table."
        index = -1 if offset.index in BASE_INDEXES else offset.index
        version = offset.reservoir_version
        form = render_json({"startingVersion": version, "index": index})
        note = None
        if index >= 0:
            note = (
                f"The stream has read files 0 to {index} of version {version}; "
                "startingVersion reads them again."
            )
        elif index == -1:
            note = f"The stream has read every version before {version}, and nothing of {version}."
        return StartOption("startingVersion", str(version), form), note

    def start_entry(self, source: SourceOffset) -> dict[str, Any] | None:
        version = parse_delta_offset(source.offset).reservoir_version
        if version < 0:
            return None
        # An option begins at a whole version, so the files that were read come again.
        return {"kind": self.name, "version": version, "index": -1}

    def read_again(self, offset: Any) -> str | None:
        place = parse_delta_offset(offset)
        if place.index < 0:
            return None
        return (
            f"stopped inside version {place.reservoir_version}. The new stream reads files 0 to "
            f"{place.index} of it a second time, because startingVersion begins at a whole version."
        )

    def in_first_snapshot(self, offset: Any) -> bool:
        return parse_delta_offset(offset).is_starting_version

    def went_back(self, was: Any, now: Any) -> Iterator[tuple[str, str, str]]:
        if was.get("reservoirId") != now.get("reservoirId"):
            return
        before, after = _version_and_index(was), _version_and_index(now)
        if before is not None and after is not None and after < before:
            yield "", _at(before), _at(after)

    def reads_another(self, was: Any, now: Any) -> str | None:
        return "reads another Delta table" if was["reservoirId"] != now["reservoirId"] else None

    def place(self, offset: Any) -> tuple[int, ...] | None:
        place = parse_delta_offset(offset)
        # The first snapshot comes before all changes, and is not one of them.
        index = -1 if place.index in BASE_INDEXES else place.index
        return (0 if place.is_starting_version else 1, place.reservoir_version, index)

    def count(self, start: Any, end: Any) -> int | None:
        if start is None or end is None:
            return None
        old, new = parse_delta_offset(start), parse_delta_offset(end)
        # An offset stands before a version's files, or within them: both versions count.
        return new.reservoir_version - old.reservoir_version + 1


def is_schema_log(path: str) -> bool:
    """Whether a path is the source's log of table schemas, anywhere below the checkpoint."""
    return "_schema_log_" in path


def parse_delta_offset(offset: Any) -> DeltaOffset:
    if not _is_known_form(offset):
        raise MalformedFile(
            f"Delta offset of sourceVersion {offset['sourceVersion']}; "
            f"this floodmark reads 1 and {_NEWEST_DELTA_SOURCE}",
            "A newer Delta may have written it.",
            "Upgrade floodmark. `floodmark batches CP` shows the offset as it is.",
        )
    return DeltaOffset(
        offset["reservoirId"],
        offset["reservoirVersion"],
        offset["index"],
        offset.get("isStartingVersion") is True,
        offset["sourceVersion"],
    )


def _is_known_form(offset: Any) -> bool:
    """Whether this release knows the form; raises for fields that no Delta can read."""
    if not isinstance(offset, dict) or not isinstance(offset.get("reservoirId"), str):
        raise MalformedFile(f"not a Delta offset: {shorten(repr(offset))}")
    if long_of(offset, "sourceVersion", "the Delta offset") not in (1, _NEWEST_DELTA_SOURCE):
        return False
    for field in ("reservoirVersion", "index"):
        long_of(offset, field, "the Delta offset")
    return True


def _words(offset: Any) -> str | None:
    if not isinstance(offset, dict):
        return None
    index = offset.get("index")
    words = f"version {offset.get('reservoirVersion')}"
    if not isinstance(index, int) or index not in BASE_INDEXES:
        known = _SCHEMA_CHANGES.get(index) if isinstance(index, int) else None
        words += known or f" file {index}"
    return words + (" of the first snapshot" if offset.get("isStartingVersion") else "")


def _version_and_index(offset: dict[str, Any]) -> tuple[int, int] | None:
    version, index = offset.get("reservoirVersion"), offset.get("index")
    if type(version) is not int or type(index) is not int:
        return None
    # Later releases hold -100 for what is written as -1: both are a version's beginning.
    return version, -1 if index in BASE_INDEXES else index


def _at(place: tuple[int, int]) -> str:
    return f"version {place[0]}, index {place[1]}"


KIND = DeltaSource()
