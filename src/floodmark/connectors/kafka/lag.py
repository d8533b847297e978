"""Counts how far a stream is behind its Kafka topics: by offsets and by times of records."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from floodmark.checkpoint.live_answers import Bounds
from floodmark.checkpoint.relative_path import shown
from floodmark.connectors.behind import Behind, PartLag, SourceLag, longest, soonest, total
from floodmark.connectors.kafka.admin import Admin, FirstRecords, Place, TopicRetention
from floodmark.connectors.kafka.offset import SERVERS, parse_kafka_offset
from floodmark.connectors.kafka.reach import KafkaTrouble, shortfalls
from floodmark.connectors.kafka.subscription import reads_committed, subscribed_topics
from floodmark.connectors.lag import LagQuestion
from floodmark.errors import CannotRead, FloodmarkError

_TIMES_ASKED = 1000
_OPEN_SHOWN = 3
_NO_BYTES = "The number of unread bytes is not known: only the records themselves show it."
_BYTES = "Bytes count keys, values and headers, before compression"


def lag(question: LagQuestion) -> SourceLag:
    source, options = question.source.position, question.source.options
    known = {} if source.offset is None else parse_kafka_offset(source.offset)
    topics = tuple(sorted({*known, *subscribed_topics(options)}))
    servers, config = brokers_to_ask(question)
    admin = Admin(servers, config, question.timeout)
    bounds = admin.bounds(topics)
    committed = reads_committed(options)
    notes = _of_topics(topics, known, bounds, options)
    notes += _of_transactions(bounds, committed)
    if source.offset is None:
        ends = tuple(
            PartLag(f"{topic}/{number}", None, found.readable(committed), found.earliest)
            for topic, there in sorted(bounds.items())
            for number, found in there.items()
        )
        unknown = "No batch is finished, so the start of the stream is not known."
        return SourceLag(
            source.id, source.kind, Behind(), ends, place=servers, notes=(*notes, unknown)
        )
    places = _positions(known, bounds, assigned="assign" in options)
    firsts, unasked = _first_records(admin, places, bounds, committed)
    notes += unasked
    rules = admin.retention(sorted(bounds))
    notes += _of_retention(rules)
    parts = tuple(
        _part(place, at, found, firsts, rules, question.now_ms, committed)
        for place, at in sorted(places.items())
        for found in (bounds.get(place[0], {}).get(place[1]),)
    )
    sizes = total(part.bytes for part in parts)
    estimated = sizes is not None and _is_estimate(parts, firsts)
    notes.insert(0, _of_bytes(sizes, estimated, firsts))
    behind = Behind(
        total(part.records for part in parts),
        sizes,
        longest(part.ms for part in parts),
        bytes_estimated=estimated,
    )
    return SourceLag(
        source.id,
        source.kind,
        behind,
        parts,
        soonest(part.retention_left_ms for part in parts),
        total(part.lost for part in parts),
        servers,
        tuple(notes),
    )


def brokers_to_ask(question: LagQuestion) -> tuple[str, Mapping[str, str]]:
    """Return the brokers, and the settings that log in there.

    A stranger may have written the notes. So only brokers that the user names get credentials, and
    a noted broker is asked only if the user allows it.
    """
    places, noted = question.places, question.source.options.get(SERVERS)
    if places.bootstrap_servers:
        return places.bootstrap_servers, question.kafka_config
    if noted and places.sources:
        return noted, {}
    if noted:
        raise CannotRead(
            "Kafka was not asked: only a note in the checkpoint names its brokers.",
            do=f"Give them: --kafka {shlex.quote(shown(noted))}. Or allow floodmark to ask every "
            "source that the notes name: --sources.",
        )
    raise CannotRead(
        "Kafka was not asked: its brokers are not known.", do="Give them: --kafka HOST:PORT."
    )


def _positions(
    known: Mapping[str, Mapping[int, int]],
    bounds: Mapping[str, Mapping[int, Bounds]],
    assigned: bool,
) -> dict[Place, int]:
    """Return what is read next of each partition; Spark reads a new one from its start."""
    places = {(topic, number): at for topic, there in known.items() for number, at in there.items()}
    if assigned:
        return places
    new = {
        (topic, number): found.earliest
        for topic, there in bounds.items()
        for number, found in there.items()
    }
    return {**new, **places}


def _first_records(
    admin: Admin,
    places: Mapping[Place, int],
    bounds: Mapping[str, Mapping[int, Bounds]],
    committed: bool,
) -> tuple[dict[Place, FirstRecords], list[str]]:
    """Return the first unread records of each partition that has some."""
    wanted = {}
    for place, at in places.items():
        found = bounds.get(place[0], {}).get(place[1])
        if found is not None and at < (end := found.readable(committed)):
            wanted[place] = (max(at, found.earliest), end)
    if len(wanted) > _TIMES_ASKED:
        return {}, [f"Records were not read: more than {_TIMES_ASKED:,} partitions are behind."]
    try:
        firsts = admin.first_records(wanted)
    except FloodmarkError as error:
        return {}, [f"The first records were not read. {error.what}"]
    if len(firsts) < len(wanted):
        late = len(wanted) - len(firsts)
        return firsts, [f"{late:,} of {len(wanted):,} partitions gave no record in time."]
    return firsts, []


def _part(
    place: Place,
    at: int,
    bounds: Bounds | None,
    firsts: Mapping[Place, FirstRecords],
    rules: Mapping[str, TopicRetention | str],
    now_ms: int,
    committed: bool,
) -> PartLag:
    name = f"{place[0]}/{place[1]}"
    if bounds is None or at > bounds.end:
        return PartLag(name, at, bounds and bounds.end, bounds and bounds.earliest)
    # A stream may have read into an open transaction with an earlier option: then it waits.
    end = max(at, bounds.readable(committed))
    records, first = end - at, firsts.get(place)
    written = first.time_ms if first else None
    age = None if written is None else max(0, now_ms - written)
    age = 0 if not records else age
    rule = rules.get(place[0])
    left = None
    if isinstance(rule, TopicRetention) and rule.ms is not None and age is not None:
        # Kafka removes whole segments when their newest record is too old, so not before this one.
        left = max(0, rule.ms - age)
    lost = max(0, bounds.earliest - at)
    size = _bytes(end - max(at, bounds.earliest), first)
    stops = bounds.readable(committed)
    return PartLag(name, at, stops, bounds.earliest, records, age, left, lost, size)


def _bytes(offsets: int, first: FirstRecords | None) -> int | None:
    """Estimate the bytes of the unread offsets by the size of the first records."""
    if not offsets:
        return 0
    if first is None or not first.offsets:
        return None
    return round(first.bytes * offsets / first.offsets)


def _is_estimate(parts: tuple[PartLag, ...], firsts: Mapping[Place, FirstRecords]) -> bool:
    """Whether some unread records were not looked at."""
    unread = sum((part.records or 0) - (part.lost or 0) for part in parts)
    return unread > sum(first.offsets for first in firsts.values())


def _of_bytes(size: int | None, estimated: bool, firsts: Mapping[Place, FirstRecords]) -> str:
    if size is None:
        return _NO_BYTES
    if not estimated:
        return f"{_BYTES}."
    records = sum(first.records for first in firsts.values())
    many = "the first record" if records == 1 else f"the first {records:,} records"
    return (
        f"{_BYTES}; they are estimated from {many} that {'is' if records == 1 else 'are'} unread."
    )


def _of_topics(
    topics: tuple[str, ...],
    known: Mapping[str, Mapping[int, int]],
    bounds: Mapping[str, Mapping[int, Bounds]],
    options: Mapping[str, str],
) -> list[str]:
    notes = [f"Topic {shown(topic)} does not exist." for topic in topics if topic not in bounds]
    for topic, there in sorted(bounds.items()):
        gone = [number for number in known.get(topic, {}) if number not in there]
        notes += [f"{topic} partition {number} is gone." for number in gone]
        new = len(there.keys() - known.get(topic, {}).keys())
        if new and known and "assign" not in options:
            many = "1 partition" if new == 1 else f"{new:,} partitions"
            notes.append(
                f"{topic} has {many} that the stream has not read yet, counted from the start."
            )
    notes += [
        f"{one.words}." for one in shortfalls(known, bounds) if one.trouble is KafkaTrouble.AHEAD
    ]
    if "subscribepattern" in options:
        notes.append("Topics that match subscribePattern since the last batch are not counted.")
    return notes


def _of_transactions(bounds: Mapping[str, Mapping[int, Bounds]], committed: bool) -> Iterator[str]:
    """Yield which end is compared, if a partition has two."""
    opened = [
        f"{topic} partition {number} from offset {found.stable}"
        for topic, there in sorted(bounds.items())
        for number, found in there.items()
        if found.stable is not None and found.stable < found.end
    ]
    shown = ", ".join(opened[:_OPEN_SHOWN])
    more = f" and {len(opened) - _OPEN_SHOWN:,} more" if len(opened) > _OPEN_SHOWN else ""
    if opened and committed:
        yield (
            f"Transactions are open in {shown}{more}. Lag is counted up to them, because the "
            "stream reads only committed records (kafka.isolation.level)."
        )
    elif opened:
        yield (
            f"Transactions are open in {shown}{more}. Lag is counted to the ends of the "
            "partitions, with the records of these transactions. A stream with "
            "kafka.isolation.level=read_committed stops before them."
        )


def _of_retention(rules: Mapping[str, TopicRetention | str]) -> list[str]:
    notes = []
    for topic, rule in sorted(rules.items()):
        if isinstance(rule, str):
            notes.append(f"The retention of {topic} is not known: {rule}.")
            continue
        if rule.compacted:
            notes.append(
                f"{topic} is compacted: lag counts offsets, and there may be fewer records."
            )
        if rule.limits_bytes:
            notes.append(
                f"{topic} also removes records by size (retention.bytes): the time is not known."
            )
        elif rule.ms is None:
            notes.append(f"{topic} removes no records by age.")
    return notes
