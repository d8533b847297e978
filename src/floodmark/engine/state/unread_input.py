"""Counts the unread input of a dropped source, or says why it cannot be counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.changes.carry.origin import Origin
from floodmark.connectors.delta import table_log
from floodmark.connectors.delta.offset import BASE_INDEXES, parse_delta_offset
from floodmark.connectors.files.live import read_source_log
from floodmark.connectors.files.offset import parse_log_offset
from floodmark.connectors.kafka.offset import SERVERS, parse_kafka_offset
from floodmark.connectors.registry import about, kind_named
from floodmark.engine.code.drawing import Drawing
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.engine.spark.kafka_admin import Broker
from floodmark.engine.state.source_starts import listed
from floodmark.errors import FloodmarkError
from floodmark.redaction import is_hidden
from floodmark.rules.restarts.source_matching import HeldSource, plain_path
from floodmark.storage.files import Files


class _Uncountable(Exception):
    """Says why the unread input cannot be counted; it becomes words, and stops nothing."""


def unread(origin: Origin, found: Drawing, held: HeldSource, topics: frozenset[str] | None) -> str:
    """Return a sentence part; `topics` are the dropped topics of Kafka, None for all."""
    from py4j.protocol import Py4JError

    try:
        return _counted(origin, found, held, topics)
    except _Uncountable as error:
        return f"what it has not read yet cannot be counted ({error})"
    except FloodmarkError as error:
        return f"what it has not read yet cannot be counted ({error.what})"
    except Py4JError as error:
        return f"what it has not read yet cannot be counted ({str(error).splitlines()[0]})"


def _counted(
    origin: Origin, found: Drawing, held: HeldSource, topics: frozenset[str] | None
) -> str:
    known = about(held.position)
    if held.position.offset is None:
        raise _Uncountable("it has no offset yet")
    if known.has_topics:
        return _kafka(found, held, topics)
    if known.names_table:
        return _delta(found, held)
    if known.lists_files:
        return _files(origin, found, held)
    raise _Uncountable(f"floodmark cannot count input of a source of kind {held.kind}")


def _kafka(found: Drawing, held: HeldSource, topics: frozenset[str] | None) -> str:
    stands = parse_kafka_offset(held.position.offset)
    options = _options(found, held)
    with Broker.connect(found.spark, options) as broker:
        bounds = broker.bounds(stands if topics is None else topics)
    behind: dict[str, int] = {}
    for topic in sorted(stands if topics is None else topics):
        if topic not in bounds:
            raise _Uncountable(f"Kafka has no topic {topic} any more")
        for number, one in bounds[topic].items():
            at = stands[topic].get(number, one.earliest)
            behind[f"{topic} {number}"] = max(0, one.end - max(at, one.earliest))
    total = sum(behind.values())
    parts = ", ".join(f"{name}: {count:,}" for name, count in behind.items() if count)
    return f"{_many(total, 'record')} of it not read yet{f' ({parts})' if parts else ''}"


def _options(found: Drawing, held: HeldSource) -> dict[str, str]:
    noted = held.noted.options if held.noted is not None else {}
    options = {key: value for key, value in noted.items() if not is_hidden(value)}
    # A note hides credentials; another source of the same brokers may have them.
    for source in found.sources:
        same = source.options.get(SERVERS) == options.get(SERVERS, source.options.get(SERVERS))
        if kind_named(source.kind).has_topics and same:
            kafka = {k: v for k, v in source.options.items() if k.startswith("kafka.")}
            return {**options, **kafka}
    if SERVERS not in options:
        raise _Uncountable("its brokers are unknown")
    return options


def _delta(found: Drawing, held: HeldSource) -> str:
    place = held.noted.options.get("path") if held.noted is not None else None
    if place is None:
        raise _Uncountable("its table's location is unknown")
    offset = parse_delta_offset(held.position.offset)
    if offset.is_starting_version:
        raise _Uncountable("it is still inside the table's first snapshot")
    files = checkpoint_files(found.spark, place)
    waiting = list(_added(files, offset.reservoir_version, offset.index))
    rows = [_rows(one) for one in waiting]
    if any(one is None for one in rows):
        return f"{_many(len(waiting), 'file')} of its table not read yet"
    total = sum(one for one in rows if one is not None)
    return f"{_many(total, 'row')} of its table not read yet, in {_many(len(waiting), 'file')}"


def _added(files: Files, version: int, index: int) -> Iterator[Mapping[str, Any]]:
    for one in table_log.versions(files):
        if one < version:
            continue
        added = [
            action["add"]
            for action in table_log.actions(files, one)
            if isinstance(action.get("add"), dict) and action["add"].get("dataChange", True)
        ]
        partly = one == version and index not in BASE_INDEXES
        yield from added[max(0, index + 1) :] if partly else added


def _rows(added: Mapping[str, Any]) -> int | None:
    try:
        found = json.loads(added["stats"])["numRecords"]
    except (KeyError, TypeError, ValueError):
        return None
    return found if isinstance(found, int) else None


def _files(origin: Origin, found: Drawing, held: HeldSource) -> str:
    seen = read_source_log(origin.files, origin.checkpoint, held.position.id)
    done = parse_log_offset(held.position.offset)
    waiting = sum(1 for file in seen if file.batch_id > done)
    path = held.noted.place if held.noted is not None else None
    if path is None:
        raise _Uncountable(f"{_many(waiting, 'file')} that it has seen wait; its folder is unknown")
    assert held.noted is not None
    known = {plain_path(file.path) for file in seen}
    there = listed(found.spark, held.noted.options)
    waiting += sum(1 for file, _ in there if plain_path(file) not in known)
    return f"{_many(waiting, 'file')} of it not read yet"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
