"""Settings that the checkpoint pins and the session contradicts: Spark ignores the session's."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.model import PROVIDER_CLASS, SHUFFLE_PARTITIONS
from floodmark.engine.look import Objection, Situation

CONTRADICTED = "pinned-conf"
NAMES = (CONTRADICTED,)
_CHANGE_IT = {
    SHUFFLE_PARTITIONS: "`floodmark repartition` makes a checkpoint with another number.",
    PROVIDER_CLASS: "`floodmark convert` makes a checkpoint with another provider.",
}


def judge(situation: Situation) -> Iterator[Objection]:
    checkpoint = situation.saved.checkpoint
    # Without state nothing depends on the pins: there the session's value does no harm.
    if checkpoint is None or not situation.saved.stateful:
        return
    session = situation.spark._jsparkSession.sessionState().conf()
    for key, pinned in checkpoint.conf.items():
        # A default that nobody chose contradicts nothing.
        if not session.contains(key):
            continue
        chosen = str(session.getConfString(key))
        if chosen != pinned:
            yield Objection(
                CONTRADICTED,
                f"{key} is {chosen} in the session and {pinned} in the checkpoint",
                f"The state was written with {pinned}; Spark goes on with that and ignores the "
                "session's value.",
                f"Set it to {pinned}, or leave it out. {_CHANGE_IT.get(key, '')}".rstrip(),
            )
