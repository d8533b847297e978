"""Prints a DStreams folder for a person."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.dstreams.folder import JVM, PYTHON, DStream, DStreamsCheckpoint, SavedRdd
from floodmark.checkpoint.dstreams.restart import restart_words
from floodmark.cli.text import ago, clock, count, duration, size, style, table
from floodmark.visible import one_line

if TYPE_CHECKING:
    from floodmark.checkpoint.model import Checkpoint
    from floodmark.checkpoint.timeline import Batch

_SHOWN = 5
_TELLING = re.compile(
    r"spark\.(streaming\..+|speculation|io\.compression\.codec|serializer|kryo\..+)"
)
_UNSAID = "not known: no checkpoint file can be read"


def checkpoint(found: Checkpoint) -> str:
    inside = found.dstreams
    assert inside is not None
    name = f" · {one_line(inside.app_name)}" if inside.app_name else ""
    parts = [
        f"{style(one_line(found.path), 'bold')}   DStreams{name}",
        table([*_files(inside), *_times(inside)]),
        table(_streams(inside)),
        table(_rdds(inside)),
        table(_others(inside)),
        table([("cannot read", item.path, item.reason) for item in found.unreadable]),
        _asked(found, inside),
        style(
            restart_words(inside, int(time.time() * 1000)),
            "red" if _cannot_restart(inside) else "green",
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def _cannot_restart(inside: DStreamsCheckpoint) -> bool:
    asked = inside.spark
    return inside.restart_file is None or (asked is not None and asked.restart_file is None)


def _asked(found: Checkpoint, inside: DStreamsCheckpoint) -> str:
    """Return Spark's answer, or how to ask Spark where files cannot be read without it."""
    answer = inside.spark
    if answer is None:
        if not any(
            file.path == item.path for file in inside.graph_files for item in found.unreadable
        ):
            return ""
        return (
            "With --trust Spark is asked whether it can read them; that runs code of whoever wrote "
            "this folder."
        )
    taken = answer.restart_file or "none of these files"
    rows = [("asked", f"Spark {answer.version}", f"takes {taken}")]
    rows += [("", path, reason) for path, reason in answer.failures.items()]
    said = table(rows)
    if answer.failures:
        said += (
            "\nFor a missing class, or one of another release, give "
            "--conf spark.jars=APP.jar, or use the Spark that wrote the folder."
        )
    return said


def _files(inside: DStreamsCheckpoint) -> list[tuple[str, ...]]:
    newest = inside.checkpoint_times[-1]
    packed = f", {inside.codec}" if inside.codec else ""
    total = size(sum(file.bytes for file in inside.graph_files if file.bytes > 0))
    rows: list[tuple[str, ...]] = [
        ("newest", clock(newest), ago(newest)),
        ("kept", count(len(inside.graph_files), "checkpoint"), f"{total}{packed}"),
    ]
    if inside.restart_file:
        told = inside.checkpoint_time_ms or 0
        rows.append(("restart", inside.restart_file, f"written for the batch of {clock(told)}"))
        rows.append(("then", inside.fall_back_file or "nothing", "if that one cannot be read"))
    return rows


def _times(inside: DStreamsCheckpoint) -> list[tuple[str, ...]]:
    if inside.batch_ms is None:
        return [("batch", _UNSAID, "")]
    said = [f"the application every {duration(inside.checkpoint_interval_ms or 0)}"]
    if inside.state_interval_ms:
        said.append(f"state every {duration(inside.state_interval_ms)}")
    pending = inside.pending_times or ()
    rows: list[tuple[str, ...]] = [
        ("batch", f"every {duration(inside.batch_ms)}", f"saved: {', '.join(said)}"),
        ("pending", count(len(pending), "batch").replace("batchs", "batches"), _span(pending)),
    ]
    if inside.master:
        language = {PYTHON: "Python", JVM: "Scala or Java"}.get(inside.language or "", "")
        rows.append(("master", inside.master, language))
    if inside.jars:
        more = f" and {len(inside.jars) - _SHOWN} more" if len(inside.jars) > _SHOWN else ""
        shown = ", ".join(inside.jars[:_SHOWN]) + more
        rows.append(("jars", count(len(inside.jars), "jar"), shown))
    if inside.conf:
        rows.append(("settings", count(len(inside.conf), "setting"), _telling(inside.conf)))
    return rows


def _telling(conf: Mapping[str, str]) -> str:
    """The settings that decide what is saved and received, and how; --json has all."""
    told = [f"{key}={conf[key]}" for key in sorted(conf) if _TELLING.fullmatch(key)]
    return ", ".join(told) or "--json lists them"


def _span(times: Sequence[int]) -> str:
    if not times:
        return ""
    return clock(times[0]) if len(times) == 1 else f"{clock(times[0])} to {clock(times[-1])}"


def _streams(inside: DStreamsCheckpoint) -> list[tuple[str, ...]]:
    return [
        (f"stream {at}", stream.kind, said)
        for at, stream in enumerate(inside.streams)
        if (said := _said(stream))
    ]


def _said(stream: DStream) -> str:
    if stream.rdds:
        newest = max(stream.rdds)
        return f"state, last saved for the batch of {clock(newest)}"
    if stream.files or stream.directory:
        taken = sum(len(files) for files in stream.files.values())
        return f"{stream.directory}: {count(taken, 'file')} remembered"
    if stream.offsets:
        ends = stream.offsets[max(stream.offsets)]
        return ", ".join(f"{one.topic}/{one.partition} → {one.until:,}" for one in ends[:_SHOWN])
    return (stream.name or "") if stream.kind.endswith("InputDStream") else ""


def _rdds(inside: DStreamsCheckpoint) -> list[tuple[str, ...]]:
    by_age = sorted(inside.rdds, key=lambda rdd: (rdd.batch_time_ms or 0, rdd.path), reverse=True)
    rows: list[tuple[str, ...]] = [
        (
            "state" if rdd.batch_time_ms is not None else "unused",
            rdd.path,
            f"{count(rdd.partitions, 'partition')}, {size(rdd.bytes)}{_age(rdd)}",
        )
        for rdd in by_age[:_SHOWN]
    ]
    if len(by_age) > _SHOWN:
        rows.append(("", f"and {len(by_age) - _SHOWN} more", ""))
    return rows


def _age(rdd: SavedRdd) -> str:
    when = rdd.batch_time_ms or rdd.written_ms
    hole = f", part {rdd.missing} is missing" if rdd.missing is not None else ""
    return (f", {ago(when)}" if when else "") + hole


def _others(inside: DStreamsCheckpoint) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    if inside.received:
        starts = min(log.start_ms for log in inside.received)
        ends = max(log.end_ms for log in inside.received)
        total = size(sum(log.bytes for log in inside.received))
        said = f"{clock(starts)} to {clock(ends)}, {total}"
        rows.append(("received", count(len(inside.received), "log"), said))
    if inside.temporary:
        more = f" and {len(inside.temporary) - 1} more" if len(inside.temporary) > 1 else ""
        rows.append(("left over", f"{inside.temporary[0]}{more}", "a write that never ended"))
    return rows


def batches(found: Sequence[Batch]) -> str:
    if not found:
        return "The application remembers no batch."
    rows = [("batch", "status", "time", "reads")]
    for batch in found:
        taken = [_taken(one.offset, one.text) for one in batch.sources]
        said = ", ".join(filter(None, taken)) or "–"
        rows.append((str(batch.batch), batch.status.value, clock(batch.batch), said))
    header, *lines = table(rows, indent="").splitlines()
    return "\n".join([style(header, "bold"), *lines])


def _taken(offset: Any, text: str | None) -> str:
    files = offset.get("files") if isinstance(offset, dict) else None
    return count(len(files), "file") if isinstance(files, list) else text or ""
