"""A checkpoint that another run uses now."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.engine.lease import live_holder
from floodmark.engine.look import Objection, Situation

IN_USE = "checkpoint-in-use"
NAMES = (IN_USE,)


def judge(situation: Situation) -> Iterator[Objection]:
    if not situation.saved.exists:
        return
    holder = live_holder(situation.files)
    if holder is not None:
        yield Objection(
            IN_USE,
            f"{situation.location} is in use by {holder.words}",
            "Two queries on one checkpoint write each other's batches until one of them fails; "
            "Spark itself does not notice in time.",
            "Stop that run first (SIGTERM lets it finish its batch), or give this one a "
            "checkpoint of its own.",
        )
