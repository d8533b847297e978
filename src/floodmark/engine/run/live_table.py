"""Shows a run to a person: a live table on a terminal, one line for each batch elsewhere."""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol

from floodmark.connectors.registry import kind_named, kind_of
from floodmark.engine.run.progress import BatchProgress, SourceProgress
from floodmark.secret_text import redacted
from floodmark.visible import one_line, visible


class View(Protocol):
    def __enter__(self) -> View: ...

    def __exit__(self, *error: Any) -> None: ...

    def say(self, pipeline: str, words: str) -> None:
        """Show one line about an event."""

    def state(self, pipeline: str, words: str) -> None:
        """Show what the pipeline is doing now."""

    def batch(self, batch: BatchProgress) -> None: ...


def choose_view(pipelines: list[str]) -> View:
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        return LiveView(pipelines)
    return PlainView(pipelines)


class PlainView:
    """Prints lines to stderr, for a log file or a service manager."""

    def __init__(self, pipelines: list[str]) -> None:
        self._width = max(map(len, pipelines), default=0)

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *error: Any) -> None:
        return

    def say(self, pipeline: str, words: str) -> None:
        line = f"{pipeline:<{self._width}}  {redacted(words)}"
        print(visible(line), file=sys.stderr, flush=True)

    def state(self, pipeline: str, words: str) -> None:
        return

    def batch(self, batch: BatchProgress) -> None:
        self.say(batch.pipeline, "   ".join(batch_words(batch)))


class LiveView:
    """Shows a table that is redrawn while the run goes on; other lines scroll above it."""

    def __init__(self, pipelines: list[str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._rows: dict[str, BatchProgress | None] = dict.fromkeys(pipelines)
        self._states = dict.fromkeys(pipelines, "starting")
        self._totals = dict.fromkeys(pipelines, 0)
        self._live = Live(
            get_renderable=self._table,
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
        )

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.__exit__(*error)
        self._live.console.print(self._table())

    def say(self, pipeline: str, words: str) -> None:
        from rich.text import Text

        self._live.console.print(
            Text.assemble((one_line(pipeline), "bold"), "  ", visible(redacted(words)))
        )

    def state(self, pipeline: str, words: str) -> None:
        self._states[pipeline] = words

    def batch(self, batch: BatchProgress) -> None:
        self._rows[batch.pipeline] = batch
        self._totals[batch.pipeline] += batch.rows

    def _table(self) -> Any:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
        for column in ("pipeline", "now"):
            table.add_column(column, no_wrap=True)
        for column in ("batch", "rows", "rows/s", "took", "state rows"):
            table.add_column(column, justify="right", no_wrap=True)
        for column in ("watermark", "offsets reached"):
            table.add_column(column, overflow="ellipsis")
        for pipeline, row in self._rows.items():
            cells = (self._states[pipeline], *self._cells(pipeline, row))
            # As Text, because brackets are not markup here.
            table.add_row(
                Text(one_line(pipeline), "bold"), *(Text(one_line(cell)) for cell in cells)
            )
        return table

    def _cells(self, pipeline: str, row: BatchProgress | None) -> tuple[str, ...]:
        if row is None:
            return ("–",) * 7
        return (
            str(row.batch),
            f"{self._totals[pipeline]:,}",
            f"{row.rows_per_second:,.0f}",
            _seconds(row.duration_ms),
            "–" if row.state_rows is None else f"{row.state_rows:,}",
            _clock(row.watermark) or "–",
            "; ".join(reached(source) for source in row.sources),
        )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def batch_words(batch: BatchProgress) -> list[str]:
    words = [
        f"batch {batch.batch}",
        f"{_rows(batch.rows)} in {_seconds(batch.duration_ms)}",
        f"{batch.rows_per_second:,.0f} rows/s",
        *(reached(source) for source in batch.sources),
    ]
    if batch.checkpoint_ms and batch.checkpoint_ms * 10 >= batch.duration_ms:
        words.append(f"checkpoint {_seconds(batch.checkpoint_ms)}")
    if batch.state_rows is not None:
        words.append(f"state {_rows(batch.state_rows)}")
    if _clock(batch.watermark):
        words.append(f"watermark {_clock(batch.watermark)}")
    return words


def reached(source: SourceProgress) -> str:
    """Return a source's position after the batch, in as few words as its kind allows."""
    return kind_named(kind_of(source.end)).reached(source.end)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"


def _clock(watermark: str | None) -> str:
    """Return the watermark's time; Spark's 1970 means that it saw no event yet."""
    if watermark is None or watermark.startswith("1970-01-01T00:00:00"):
        return ""
    return watermark[:19].replace("T", " ")
