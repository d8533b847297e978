"""Rewrites state in this process, one partition at a time, and reads it back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from floodmark.changes.apply import PlanPlaces
from floodmark.changes.plan import Step
from floodmark.checkpoint.model import Checkpoint
from floodmark.state.shapes.tally import Tally
from floodmark.statestore.rewrite.in_flight import rewrite_again
from floodmark.statestore.rewrite.partitions import (
    RewriteTarget,
    StoreToRewrite,
    check_store,
    rewrite_store,
    stores_of,
)
from floodmark.storage.files import Files
from floodmark.storage.load import Entries, load


@dataclass
class StateRewriter:
    """What `repartition` and `convert` need. It remembers what it has read, to compare."""

    _read: dict[tuple[int, int, str], Tally] = field(default_factory=dict)
    _checkpoint: Checkpoint | None = None

    def rewrite(self, step: Step, places: PlanPlaces) -> None:
        goal, batch = goal_of(step), number_of(step, "batch")
        conf = self._conf(places.origin, batch)
        for store, before in self._stores(step, places.origin):
            if before is None:
                found = rewrite_store(store, places.target, goal, conf)
            else:
                found = rewrite_again(before, store, places.target, goal, conf)
            self._read[store.at.operator, batch, store.name] = found

    def check(self, step: Step, places: PlanPlaces) -> None:
        goal, batch = goal_of(step), number_of(step, "batch")
        for store, _ in self._stores(step, places.origin):
            expected = self._read[store.at.operator, batch, store.name]
            check_store(store, places.target, goal, expected)

    def _stores(
        self, step: Step, origin: Files
    ) -> Iterator[tuple[StoreToRewrite, StoreToRewrite | None]]:
        yield from stores_in(step, origin, self._loaded(origin))

    def _conf(self, origin: Files, batch: int) -> dict[str, str]:
        entry = self._loaded(origin).offsets.get(batch)
        return dict(entry.metadata.conf) if entry and entry.metadata else {}

    def _loaded(self, origin: Files) -> Checkpoint:
        if self._checkpoint is None:
            self._checkpoint = load(origin, Entries.ALL)
        return self._checkpoint


def stores_in(
    step: Step, origin: Files, checkpoint: Checkpoint
) -> Iterator[tuple[StoreToRewrite, StoreToRewrite | None]]:
    """Every store that a step is about; with what it was before, where a batch was in flight."""
    number, batch = number_of(step, "operator"), number_of(step, "batch")
    stores = stores_of(origin, checkpoint, number, batch)
    since = step.how.get("since") if step.how is not None else None
    earlier = stores_of(origin, checkpoint, number, since) if since is not None else ()
    before = {store.name: store for store in earlier}
    for store in stores:
        yield store, before.get(store.name)


def number_of(step: Step, name: str) -> int:
    assert step.how is not None
    return int(step.how[name])


def goal_of(step: Step) -> RewriteTarget:
    assert step.how is not None
    ids = step.how["unique_ids"]
    return RewriteTarget(
        number_of(step, "version"),
        step.how["partitions"],
        step.how["provider"],
        tuple(tuple(stores) for stores in ids) if ids is not None else None,
    )
