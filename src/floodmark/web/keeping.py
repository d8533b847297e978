"""Writes what was seen to the history: not too often, and not too much."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

from floodmark.fleet.card import FleetCard
from floodmark.fleet.pulse import StreamHealth
from floodmark.web.history import BatchSample, History, Sample
from floodmark.web.one_checkpoint import Watched

SAMPLE_MS = 60_000
_PRUNE_SECONDS = 3600


class Keeper:
    def __init__(self, history: History) -> None:
        self._history = history
        self._pruned = 0.0

    def keep(self, watched: Iterable[Watched]) -> None:
        """Write a sample a minute of what changed, and every batch that was seen."""
        now_ms = int(time.time() * 1000)
        samples, batches = [], []
        for one in list(watched):
            card, found = one.card, one.glimpse
            if found is None or one.examined is None or card.health is StreamHealth.UNKNOWN:
                continue
            newest = found.commit_times[-1][0] if found.commit_times else found.committed
            moved = newest != one.kept_batch
            if now_ms - one.sampled_ms >= SAMPLE_MS and (moved or one.lag or not one.sampled_ms):
                one.sampled_ms = now_ms
                samples.append((one.id, sample_of(card, now_ms)))
            if moved:
                before = -1 if one.kept_batch is None else one.kept_batch
                planned = {} if is_copy(one) else dict(found.plan_times)
                batches += [
                    (one.id, BatchSample(batch, at, planned.get(batch)))
                    for batch, at in one_a_minute(found.commit_times)
                    if batch > before
                ]
                one.kept_batch = newest
        self._history.add(samples)
        self._history.add_batches(batches)
        if time.monotonic() - self._pruned > _PRUNE_SECONDS:
            self._pruned = time.monotonic()
            prune = threading.Thread(target=self._history.prune, args=(now_ms,), daemon=True)
            prune.start()  # for very many streams it takes a while, and the clock must not wait


def one_a_minute(times: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first batch of each minute, as a stream may have very many."""
    first: dict[int, tuple[int, int]] = {}
    for batch, at in times:
        first.setdefault(at // SAMPLE_MS, (batch, at))
    return list(first.values())


def is_copy(one: Watched) -> bool:
    """Whether a checkpoint is a copy: its files have the times of copying, so no durations."""
    return one.examined is not None and one.examined.batch_times is not None


def sample_of(card: FleetCard, now_ms: int) -> Sample:
    return Sample(
        now_ms,
        card.committed_batch,
        card.lag.records,
        card.lag.bytes,
        card.lag.ms,
        card.state_bytes,
        card.watermark_ms,
    )
