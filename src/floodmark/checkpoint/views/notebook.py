"""Shows a checkpoint in a notebook: plain HTML, without scripts or downloads."""

from __future__ import annotations

from datetime import datetime, timezone
from html import escape as escape_html

from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.checkpoint.model import Checkpoint, Kind, earlier_sources
from floodmark.checkpoint.restart import Action, restart
from floodmark.connectors.registry import advances
from floodmark.visible import one_line

_CELL = "text-align:left;padding:2px 16px 2px 0;vertical-align:top;border:none;white-space:pre-wrap"
_LABEL = _CELL + ";opacity:0.65;white-space:nowrap"
# Colours that can be read on a light page and on a dark one.
_COLOURS = {Action.FAIL: "#d1495b", Action.RERUN: "#d18f1f", Action.UNKNOWN: "#d18f1f"}
_SOUND = "#3a9d5d"


def escape(text: str) -> str:
    return escape_html(one_line(text))


def to_html(checkpoint: Checkpoint) -> str:
    if checkpoint.kind is Kind.DSTREAMS:
        return f"<div><b>{escape(checkpoint.path)}</b> · DStreams</div>"
    title = f"<b>{escape(checkpoint.path)}</b> · query {escape(checkpoint.query_id or 'unknown')}"
    body = "".join(_row(*cells) for cells in _rows(checkpoint))
    verdict = restart(checkpoint)
    edge = f"border-left:4px solid {_COLOURS.get(verdict.action, _SOUND)};padding-left:8px"
    return (
        f'<div style="text-align:left">{title}'
        f'<table style="margin:6px 0;border:none">{body}</table>'
        f'<div style="{edge}">{escape(verdict.words)}</div></div>'
    )


def _rows(checkpoint: Checkpoint) -> list[tuple[str, str, str]]:
    latest, committed = checkpoint.latest_batch, checkpoint.committed_batch
    in_flight = checkpoint.in_flight_batch is not None
    rows = [
        ("planned", _batch(f"{OFFSETS}/", latest), _time(checkpoint.batch_time_ms)),
        ("processed", _batch("batch ", latest), "no commit yet" if in_flight else "done"),
        ("committed", _batch(f"{COMMITS}/", committed), ""),
    ]
    rows += advances(checkpoint.sources, earlier_sources(checkpoint))
    rows += [
        (
            f"state {operator.operator}",
            operator.name or "operator",
            f"{operator.provider}, {operator.partitions} partitions, version {operator.version}",
        )
        for operator in checkpoint.state_operators
    ]
    if checkpoint.watermark_ms:
        rows.append(("watermark", _time(checkpoint.watermark_ms), ""))
    rows += [("cannot read", item.path, item.reason) for item in checkpoint.unreadable]
    return rows


def _batch(what: str, batch: int | None) -> str:
    return "none yet" if batch is None else f"{what}{batch}"


def _time(time_ms: int | None) -> str:
    if time_ms is None:
        return ""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms:,} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _row(label: str, *cells: str) -> str:
    styled = [(_LABEL, label), *((_CELL, cell) for cell in cells)]
    body = "".join(f'<td style="{style}">{escape(cell)}</td>' for style, cell in styled)
    return f'<tr style="background:none">{body}</tr>'
