"""`floodmark watch`: watch a stream live in the terminal, with small plots."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from statistics import median
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.lag import in_words, retention_words
from floodmark.cli.text import (
    ago,
    clock,
    count,
    duration,
    echo,
    shown,
    size,
    style,
    table,
    width,
    wrapped,
)
from floodmark.fleet.pulse import span
from floodmark.visible import one_line

if TYPE_CHECKING:
    from floodmark.connectors.behind import SourceLag
    from floodmark.fleet.sighting import Sighting

_BARS, _PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
_PLOTTED = 40
_KEPT = 600
_COLOURS = {"on-time": ("green",), "late": ("yellow",), "stalled": ("red",), "unknown": ("red",)}


@click.command("watch")
@click.argument("checkpoint", metavar="CP")
@click.option(
    "--interval",
    type=options.Seconds(min=0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Look N times.")
@click.option("--once", is_flag=True, help="Look once.")
@options.live_sources(timeout=5.0)
@options.source_kinds
@options.storage
@options.as_json
def command(checkpoint: str, once: bool, as_json: bool, **named: Any) -> int:
    """Watch a stream in the terminal: batches, lag, watermark, what a restart does.

    Ctrl-C ends it. Where stdout is no terminal, each look is printed below the last; with --json
    each is one line.
    """
    seen = api.watch(checkpoint, once=once, **named)
    first = next(seen)  # this reports a wrong checkpoint as any other verb does
    looks = _until_ctrl_c(chain([first], seen))
    try:
        if as_json:
            _as_json(looks)
        elif once or not _is_live():
            _as_lines(looks)
        else:
            _live(looks)
    except KeyboardInterrupt:
        return 0  # it is the way to end it
    return 0


def _until_ctrl_c(seen: Iterable[Sighting]) -> Iterator[Sighting]:
    """Note an interrupt and stop: Python drops one that comes during a cleanup."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        for look in seen:
            if asked:
                return
            yield look
    finally:
        signal.signal(signal.SIGINT, before)


def _is_live() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _as_json(seen: Iterable[Sighting]) -> None:
    from floodmark import wire

    for look in seen:
        echo(wire.dumps(look, None))
        sys.stdout.flush()


def _as_lines(seen: Iterable[Sighting]) -> None:
    history = WatchedLags()
    for number, look in enumerate(seen):
        history.add(look)
        echo(("\n" if number else "") + frame(look, history))
        sys.stdout.flush()


def _live(seen: Iterator[Sighting]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    history = WatchedLags()
    console = Console(highlight=False)
    text, foot = "", style("Ctrl-C ends it.", "dim")
    with (
        contextlib.suppress(KeyboardInterrupt),
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        for look in seen:
            history.add(look)
            text = frame(look, history)
            live.update(Text.from_ansi(shown(f"{text}\n\n{foot}")), refresh=True)
    console.print(Text.from_ansi(shown(text)))  # keep the last look when the screen ends


class WatchedLags:
    """Remembers the lag of each source for as long as it was watched."""

    def __init__(self) -> None:
        self.lags: dict[str, list[int | None]] = {}

    def add(self, look: Sighting) -> None:
        for source in look.lag.sources if look.lag else ():
            behind = source.behind
            values = (behind.records, behind.files, behind.versions)
            known = next((value for value in values if value is not None), None)
            self.lags.setdefault(source.id, []).append(known)
            del self.lags[source.id][:-_KEPT]


def frame(look: Sighting, history: WatchedLags) -> str:
    """Return one look as text, with small plots."""
    head = f"{style(one_line(look.path), 'bold')}   {clock(look.time_ms)}"
    if look.problem is not None:
        return "\n".join([head, "", *wrapped("  ", look.problem, 96, 2)])
    if look.pulse is not None:
        health = look.pulse.health.value
        head += f"   {style(health, *_COLOURS.get(health, ()))}"
        head = "\n".join([head, *wrapped("  ", look.pulse.words, 96, 2)])
    rows = [*_batches(look), *_facts(look)]
    sources = look.lag.sources if look.lag else ()
    lags = [line for source in sources for line in _lag(source, history)]
    parts = [head, table(rows), "\n".join(lags), "\n".join(wrapped("  ", look.restart, 96, 2))]
    return "\n\n".join(part for part in parts if part)


def _batches(look: Sighting) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    planned = "no batch yet" if look.latest_batch is None else f"batch {look.latest_batch}"
    if look.in_flight_batch is not None:
        since = look.in_flight_since_ms
        age = "" if since is None else f", planned {ago(since, look.time_ms)}"
        flying = style(f"batch {look.in_flight_batch}", "yellow")
        rows.append(("in flight", flying, f"no commit{age}"))
    done = "none" if look.committed_batch is None else f"batch {look.committed_batch}"
    rows.append(("committed", done, f"newest planned: {planned}"))
    took = [one.duration_ms for one in look.batches]
    known = [value for value in took if value is not None]
    if known:
        words = f"{span(known[-1])} last, {span(median(known))} median"
        rows.append(("time", plot(took), words))
    read = [value for value in look.records if value is not None]
    if read:
        words = f"{count(read[-1], 'record')} last, {sum(read):,} in all that is plotted"
        rows.append(("read", plot(look.records), words))
    return rows


def _facts(look: Sighting) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    if look.watermark_ms is not None:
        behind = duration(max(0, look.time_ms - look.watermark_ms))
        rows.append(("watermark", clock(look.watermark_ms), f"{behind} behind the clock"))
    if look.bytes is not None:
        state = f"{size(look.state_bytes)} of it state" if look.state_bytes else "no state"
        rows.append(("size", size(look.bytes), state))
    return rows


def _lag(source: SourceLag, history: WatchedLags) -> list[str]:
    head = f"  source {source.id}   {source.kind}"
    if source.error is not None:
        return [head, *wrapped("    ", source.error, 96, 4)]
    lines = [f"{head}   {plot(history.lags.get(source.id, ()))}   {in_words(source)}"]
    if source.lost:
        lines.append("    " + style(f"{source.lost:,} are gone before they were read", "red"))
    if source.retention_left_ms is not None:
        lines.append(f"    {retention_words(source)}")
    return lines


def plot(values: Sequence[int | None], most: int = _PLOTTED) -> str:
    """Return the newest values as bars of text, with a gap for an unknown value."""
    newest = list(values)[-min(most, max(8, width(100) - 60)) :]
    known = [value for value in newest if value is not None]
    if not known:
        return ""
    bars, top = _bars(), max(known)
    return "".join(
        " " if value is None else bars[0 if top <= 0 else min(7, value * 8 // (top + 1))]
        for value in newest
    )


def _bars() -> str:
    try:
        _BARS.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return _PLAIN_BARS
    return _BARS
