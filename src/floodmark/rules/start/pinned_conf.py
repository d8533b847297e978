"""Finds settings that the checkpoint pins and the session contradicts."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import PROVIDER_CLASS, SHUFFLE_PARTITIONS, SOURCE_EVOLUTION
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM403",
    "pinned-conf",
    Severity.ERROR,
    finds="A setting of the session that differs from the one that the checkpoint pins, in a "
    "query that keeps state.",
    matters="The state was written with the pinned value.",
    restart="Spark goes on with the pinned value and ignores the session's, without a warning.",
    instead="Set the pinned value, or leave the setting out. `floodmark repartition` and "
    "`floodmark convert` make a checkpoint with another one.",
)
_CHANGE_IT = {
    SHUFFLE_PARTITIONS: "`floodmark repartition` makes a checkpoint with another number.",
    PROVIDER_CLASS: "`floodmark convert` makes a checkpoint with another provider.",
}


def check(situation: Situation) -> Iterator[Finding]:
    # Without state nothing depends on the pinned values, so the session's value does no harm.
    if situation.checkpoint is None or not situation.stateful:
        return
    for key, pinned in situation.checkpoint.conf.items():
        if key == SOURCE_EVOLUTION:
            continue  # source-names-unknown reports whether sources have names
        chosen = situation.conf.get(key, pinned)
        if chosen != pinned:
            yield RULE.finding(
                situation.location,
                f"{key} is {chosen} in the session, but {pinned} in the checkpoint",
                why=f"The state was written with {pinned}; Spark goes on with that and ignores "
                "the session's value.",
                do=f"Set it to {pinned}, or leave it out. {_CHANGE_IT.get(key, '')}".rstrip(),
            )
