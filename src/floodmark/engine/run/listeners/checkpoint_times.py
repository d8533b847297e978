"""Reports when the checkpoint's writes take most of a batch's time, and what can help."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from floodmark.engine.run.listeners import Listener
from floodmark.engine.run.live_table import View
from floodmark.engine.run.progress import BatchProgress
from floodmark.engine.start.async_progress import ENABLED, refusal

if TYPE_CHECKING:
    from floodmark.engine.start.query_to_start import QueryToStart

_LOOKED_AT = 10
_ENOUGH = 5
_MOST = 0.5
# Nobody notices less than this, whatever its share.
_FELT_MS = 200


class CheckpointTimes(Listener):
    """Warns once for each query."""

    def __init__(self) -> None:
        self._say: dict[str, Callable[[str], None]] = {}
        self._advice: dict[str, str] = {}
        self._recent: dict[str, deque[tuple[int, int]]] = defaultdict(
            lambda: deque(maxlen=_LOOKED_AT)
        )

    def begins(self, pipeline: str, starting: QueryToStart, view: View, restarts: int) -> None:
        if pipeline not in self._advice:
            self._say[pipeline] = partial(view.say, pipeline)
            self._advice[pipeline] = _advice(starting)

    def batch(self, batch: BatchProgress) -> None:
        recent = self._recent[batch.pipeline]
        recent.append((batch.checkpoint_ms or 0, batch.duration_ms))
        words = dominating(list(recent))
        say = self._say.get(batch.pipeline)
        if words is not None and say is not None:
            say(f"{words} {self._advice[batch.pipeline]}")
            del self._say[batch.pipeline]


def dominating(recent: list[tuple[int, int]]) -> str | None:
    """Return a sentence about the last batches (ms of checkpoint, ms in total), or None."""
    writes = sum(one for one, _ in recent)
    whole = sum(one for _, one in recent)
    if len(recent) < _ENOUGH or not whole or writes < _MOST * whole:
        return None
    if writes < _FELT_MS * len(recent):
        return None
    count = len(recent)
    return (
        f"the writes of the checkpoint take {writes / whole:.0%} of a batch: "
        f"{writes / count / 1000:.1f} of {whole / count / 1000:.1f} s in the last {count} batches."
    )


def _advice(starting: QueryToStart) -> str:
    ways = ["Fewer batches cost less: --trigger 10s."]
    if starting.location.startswith("s3a:"):
        ways.append("`floodmark explain slow-file-manager` names a quicker way to write to S3.")
    query = starting.query
    if query.sink_options.get(ENABLED.lower()) != "true" and refusal(query) is None:
        ways.append("--async-progress 1s writes the logs beside the batches, at a price.")
    return " ".join(ways)
