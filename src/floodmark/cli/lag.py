"""`floodmark lag`: say how far a stream is behind its sources."""

from __future__ import annotations

from typing import Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import count, duration, echo, size, style, table, wrapped
from floodmark.connectors.behind import Lag, PartLag, SourceLag
from floodmark.connectors.registry import kind_named
from floodmark.errors import CannotRead

_PARTS_SHOWN = 20
_READ = "not behind: everything is read"
_NOT_ANSWERED = CannotRead.status


@click.command("lag")
@click.argument("checkpoint", metavar="CP")
@options.live_sources(timeout=15.0)
@click.option(
    "--commit-to-group",
    metavar="NAME",
    help="Write the offsets into this Kafka consumer group, for other tools to see. A group that "
    "has members is refused.",
)
@options.source_kinds
@options.storage
@options.as_json
def command(checkpoint: str, as_json: bool, **named: Any) -> int:
    """Say how far a stream is behind its sources: in records, bytes and time.

    Counted from the end of the last finished batch, as the sources answer now. Exits 3 where one
    that can be asked has not answered, 4 where --commit-to-group is refused.
    """
    found = api.lag(checkpoint, **named)
    if as_json:
        options.show_json(found)
    else:
        echo(text(found))
    return 0 if found.complete else _NOT_ANSWERED


def text(found: Lag) -> str:
    after = "no batch is finished" if found.batch is None else f"after batch {found.batch}"
    flight = "" if found.in_flight_batch is None else f", batch {found.in_flight_batch} in flight"
    parts = [f"{style(found.path, 'bold')}   {after}{flight}"]
    parts += [_source(source) for source in found.sources]
    if not found.sources:
        parts.append("The stream has no source.")
    group = found.committed_group
    if group is not None:
        number = sum(map(len, group.offsets.values()))
        parts.append(
            f"{count(number, 'offset')} committed to group {group.group} at {group.place}. The "
            "broker forgets them in time: commit again, or let `floodmark run --commit-to-group` "
            "do it."
        )
    return "\n\n".join(parts)


def _source(source: SourceLag) -> str:
    where = f"   {source.place}" if source.place else ""
    head = f"source {source.id}   {source.kind}{where}"
    if source.error is not None:
        return "\n".join([head, *wrapped("  ", source.error, 96, 2)])
    lines = [head, f"  {style(in_words(source), *_colour(source))}"]
    if source.lost:
        what = "versions" if source.behind.versions is not None else "records"
        lines.append("  " + style(f"{source.lost:,} {what} are gone before they were read", "red"))
    if source.retention_left_ms is not None:
        lines.append(f"  {retention_words(source)}")
    if len(source.parts) > 1 or any(part.earliest is not None for part in source.parts):
        lines.append(_parts(source.parts, kind_named(source.kind).goes_by_ids))
    lines += [line for note in source.notes for line in wrapped("  ", note, 96, 2)]
    return "\n".join(lines)


def in_words(source: SourceLag) -> str:
    """Return how far a source is behind, in all units that are known."""
    behind = source.behind
    counts = (behind.records, "record"), (behind.versions, "version"), (behind.files, "file")
    said = [count(number, noun) for number, noun in counts if number is not None]
    if behind.bytes is not None:
        said.append(f"about {size(behind.bytes)}" if behind.bytes_estimated else size(behind.bytes))
    if not said and behind.ms is None:
        return "how far behind is not known"
    if not any((*(number for number, _ in counts), behind.bytes, behind.ms)):
        return _READ
    if behind.ms is not None:
        said.append(f"the oldest {duration(behind.ms)} old")
    return f"behind: {', '.join(said)}"


def _colour(source: SourceLag) -> tuple[str, ...]:
    if source.lost or source.retention_left_ms == 0:
        return ("red",)
    return ("green",) if in_words(source) == _READ else ()


def retention_words(source: SourceLag) -> str:
    left = source.retention_left_ms or 0
    if left == 0:
        return style("retention may remove unread records at any time", "red")
    if in_words(source) == _READ:
        return f"new records stay for at least {duration(left)}"
    return f"retention keeps them for at least {duration(left)}"


def _parts(parts: tuple[PartLag, ...], ids: bool) -> str:
    shown = sorted(parts, key=lambda part: -(part.records or 0))[:_PARTS_SHOWN]
    rows: list[tuple[str, ...]] = [
        ("part", "next", "end", "earliest", "records", "oldest", "retention")
    ]
    rows += [
        (
            part.part,
            *(_cell(value, ids) for value in (part.position, part.end, part.earliest)),
            _cell(part.records),
            "–" if part.ms is None else duration(part.ms),
            "–" if part.retention_left_ms is None else duration(part.retention_left_ms),
        )
        for part in shown
    ]
    more = len(parts) - len(shown)
    return table(rows, "    ") + (f"\n    … and {more:,} more, less behind" if more else "")


def _cell(value: object, is_id: bool = False) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not is_id else str(value)
