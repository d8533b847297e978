"""A checkpoint that another run uses now."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.engine.lease import in_use, live_holder
from floodmark.engine.look import Objection, Situation

IN_USE = "checkpoint-in-use"
NAMES = (IN_USE,)


def judge(situation: Situation) -> Iterator[Objection]:
    if not situation.saved.exists:
        return
    holder = live_holder(situation.files)
    if holder is not None:
        refusal = in_use(situation.location, holder)
        yield Objection(IN_USE, refusal.what, refusal.why, refusal.do)
