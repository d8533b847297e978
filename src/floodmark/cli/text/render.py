"""Prints results as text for a person; `wire` makes the JSON for scripts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.checkpoint.model import Checkpoint, Kind, earlier_sources
from floodmark.checkpoint.restart import Action, restart
from floodmark.cli.text import (
    ago,
    clock,
    count,
    duration,
    size,
    style,
    table,
    terminal_columns,
    wrapped,
)
from floodmark.connectors.registry import advances
from floodmark.connectors.source import plain
from floodmark.visible import one_line

if TYPE_CHECKING:
    from floodmark.checkpoint.views.differences import Difference
    from floodmark.checkpoint.views.inspection import ScanEntry
    from floodmark.connectors.files.input_files import InputFile

_FINDING = 70
_DAY_MS = 86_400_000


def checkpoint(found: Checkpoint, state_missing: Sequence[str] = ()) -> str:
    """Return the picture of a checkpoint with its numbers."""
    if found.kind is Kind.DSTREAMS:
        from floodmark.cli.text import render_dstreams

        return render_dstreams.checkpoint(found)
    verdict = restart(found, state_missing)
    colours = {Action.FAIL: "red", Action.RERUN: "yellow", Action.UNKNOWN: "yellow"}
    colour = colours.get(verdict.action, "green")
    query = one_line(found.query_id or "") or _no_query(found)
    columns = terminal_columns()
    narrow = columns is not None and len(found.path) + len(query) + 31 > columns
    parts = [
        f"{style(one_line(found.path), 'bold')}{chr(10) if narrow else '   '}"
        f"Structured Streaming · query {query}",
        table(_steps(found)),
        table([*advances(found.sources, earlier_sources(found)), *_state(found), *_facts(found)]),
        table([("cannot read", item.path, item.reason) for item in found.unreadable]),
        _look_alikes(found),
        _not_read(found),
        style(verdict.words, colour),
    ]
    return "\n\n".join(part for part in parts if part)


def _look_alikes(found: Checkpoint) -> str:
    """Name the kinds whose offsets look the same: Spark writes no kind beside an offset."""
    kinds = {source.id: source.kind for source in found.sources}
    told = [f"Source {one_line(source)}: {words}" for source, words in found.disputed.items()]
    told += [
        f"Source {one_line(source)} is read as {kinds[source]}; offsets of {' and '.join(others)} "
        "look the same. If it is one, name it: "
        f"{' or '.join(f'--source-kind {shlex.quote(source)}={other}' for other in others)}"
        for source, others in found.could_be.items()
        if source not in found.disputed
    ]
    columns = terminal_columns()
    if columns is None:
        return "\n".join(told)
    return "\n".join(line for one in told for line in wrapped("", one, columns))


def _not_read(found: Checkpoint) -> str:
    if not found.not_read:
        return ""
    return (
        f"Not read, to keep this look to few requests: {', '.join(map(one_line, found.not_read))}. "
        f"`floodmark inspect {one_line(found.path)} --schema` reads what describes the state."
    )


def _no_query(found: Checkpoint) -> str:
    if not found.files:
        return "not begun"
    return style("unknown: its metadata file is missing or broken", "red")


def _steps(found: Checkpoint) -> list[tuple[str, str, str]]:
    """Return the steps of a batch: planned, processed, committed."""
    latest, committed = found.latest_batch, found.committed_batch
    if latest is None:
        planned, processed = ("no batch yet", ""), ("nothing yet", "")
    else:
        planned = (f"{OFFSETS}/{latest}", _when(found.batch_time_ms))
        done = found.in_flight_batch is None
        processed = (
            f"batch {latest}",
            "done" if done else "running, or it died here: no commit yet",
        )
    finished = ("no batch yet", "")
    if committed is not None:
        finished = (f"{COMMITS}/{committed}", _written(found, f"{COMMITS}/{committed}"))
    return [
        ("1  planned", *planned),
        ("2  processed", *processed),
        ("3  committed", *finished),
    ]


def _when(time_ms: int | None) -> str:
    return "" if time_ms is None else f"{clock(time_ms)}   {ago(time_ms)}"


def _written(found: Checkpoint, path: str) -> str:
    """Return a commit's time from its file, unless the checkpoint was copied."""
    time_ms = next((file.mtime_ms for file in found.files if file.path == path), None)
    copied = time_ms and found.batch_time_ms and time_ms - found.batch_time_ms > _DAY_MS
    return "" if copied else _when(time_ms)


def _state(found: Checkpoint) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for operator in found.state_operators:
        words = [operator.provider, count(operator.partitions, "partition")]
        if operator.stores not in ((), ("default",)):
            words.append(count(len(operator.stores), "store"))
        if operator.version is not None:
            words.append(f"version {operator.version}")
        about = "" if found.complete else "at least "
        words.append(about + size(operator.bytes))
        rows.append((f"state {operator.operator}", operator.name or "operator", ", ".join(words)))
    return rows


def _facts(found: Checkpoint) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    watermark, batch_time = found.watermark_ms, found.batch_time_ms
    if watermark:
        rows.append(("watermark", clock(watermark), _distance(watermark, batch_time)))
    if found.conf:
        rows.append(("pinned", count(len(found.conf), "setting"), _pinned(found)))
    about = "" if found.complete else "at least "
    rows.append(("files", about + f"{len(found.files):,}", about + size(found.bytes)))
    return rows


def _distance(watermark: int, batch_time: int | None) -> str:
    if not batch_time:
        return ""
    behind = batch_time - watermark
    return f"{duration(behind)} behind" if behind >= 0 else f"{duration(-behind)} ahead"


def _pinned(found: Checkpoint) -> str:
    partitions = found.conf.get(SHUFFLE_PARTITIONS)
    words = "they win over the session's"
    return f"{words}; {partitions} shuffle partitions" if partitions else words


def files(found: Sequence[InputFile]) -> str:
    if not found:
        return "No file."
    rows = [
        (
            file.taken.value if file.batch is None else f"batch {file.batch}",
            f"source {file.source}",
            clock(file.timestamp_ms),
            file.path,
        )
        for file in found
    ]
    return table(rows, indent="")


def differences(found: Sequence[Difference], left: str, right: str, is_whole: bool = True) -> str:
    """`is_whole`: everything was compared."""
    if not found and is_whole:
        return f"No difference between {left} and {right}."
    if not found:
        return f"The logs of {left} and {right} do not differ, but not everything was compared."
    rows = [("", left, right)]
    rows += [(_where(item), *_sides(item)) for item in found]
    return table(rows, indent="") + f"\n\n{count(len(found), 'difference')}."


def _where(item: Difference) -> str:
    """Return a readable name for our own fields; topics, tables and settings stay."""
    if " " in item.where:
        return item.where
    return item.where.removesuffix("_ms").replace("_", " ")


def _sides(item: Difference) -> tuple[str, str]:
    if item.where.endswith("_ms"):
        return tuple(clock(ms) if ms else "–" for ms in (item.left, item.right))  # type: ignore[return-value]
    return _side(item.left), _side(item.right)


def _side(value: Any) -> str:
    return "–" if value is None else (plain(getattr(value, "value", value)) or "–")


def _summary(entry: ScanEntry) -> str:
    if not entry.findings:
        flow = entry.flow
        if flow is not None:
            return f"flow {flow.flow} of {flow.table}: {flow.status.value}"
        return "DStreams" if entry.kind is Kind.DSTREAMS else ""
    first, *others = entry.findings
    short = first if len(first) <= _FINDING else first[: _FINDING - 1] + "…"
    return f"{short} (and {len(others)} more)" if others else short


def scan(found: Sequence[ScanEntry]) -> str:
    if not found:
        return "No checkpoint found."
    rows = [("checkpoint", "committed", "in flight", "size", "")]
    rows += [
        (
            entry.path,
            "–" if entry.committed_batch is None else str(entry.committed_batch),
            "–" if entry.in_flight_batch is None else str(entry.in_flight_batch),
            size(entry.bytes),
            _summary(entry),
        )
        for entry in found
    ]
    header, *lines = table(rows, indent="").splitlines()
    troubled = sum(bool(entry.findings) for entry in found)
    ending = f"{count(len(found), 'checkpoint')}, {troubled or 'none'} with something to look at."
    return "\n".join([style(header, "bold"), *lines, "", ending])
