"""Tells whoever listens what a run does: probes, metrics, a consumer group.

A listener overrides what it wants to hear. It is called by the thread that runs the queries, so it
returns at once; only `begins` may refuse, and so keep a query from starting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from floodmark.engine.run.progress import BatchProgress
from floodmark.engine.run.view import View

if TYPE_CHECKING:
    from floodmark.engine.start.query_to_start import QueryToStart


class Listener:
    def begins(self, pipeline: str, starting: QueryToStart, view: View, restarts: int) -> None:
        """The query is about to start."""

    def state(self, pipeline: str, words: str) -> None:
        """starting, running, waits …, stopping, finished, stopped, failed"""

    def batch(self, batch: BatchProgress) -> None:
        """The batch is finished."""

    def turned(self) -> None:
        """The run's loop goes round."""

    def busy(self, pipeline: str, is_busy: bool) -> None:
        """Whether a batch is being planned or run now."""


class ToldView:
    """A view that also tells the listeners what it shows."""

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
