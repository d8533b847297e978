"""Passes a run's events to listeners: probes, metrics, a consumer group.

A listener overrides the events that it needs. The thread that runs the queries calls it, so it
must return at once. Only `begins` may raise an error, which keeps the query from starting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from floodmark.engine.run.live_table import View
from floodmark.engine.run.progress import BatchProgress

if TYPE_CHECKING:
    from floodmark.engine.start.query_to_start import QueryToStart


class Listener:
    def begins(self, pipeline: str, starting: QueryToStart, view: View, restarts: int) -> None:
        """Called when the query is about to start."""

    def state(self, pipeline: str, words: str) -> None:
        """Called with a state: starting, running, waits …, stopping, finished, stopped, failed."""

    def batch(self, batch: BatchProgress) -> None:
        """Called when the batch is finished."""

    def turned(self) -> None:
        """Called in each turn of the run's loop."""

    def busy(self, pipeline: str, is_busy: bool) -> None:
        """Called with whether a batch is being planned or run now."""


class ToldView:
    """Passes everything that a view shows to the listeners as well."""

    def __init__(self, view: View, listeners: Iterable[Listener]) -> None:
        self._view = view
        self._listeners = tuple(listeners)

    def __enter__(self) -> ToldView:
        self._view.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._view.__exit__(*error)

    def say(self, pipeline: str, words: str) -> None:
        self._view.say(pipeline, words)

    def state(self, pipeline: str, words: str) -> None:
        for listener in self._listeners:
            listener.state(pipeline, words)
        self._view.state(pipeline, words)

    def batch(self, batch: BatchProgress) -> None:
        for listener in self._listeners:
            listener.batch(batch)
        self._view.batch(batch)
