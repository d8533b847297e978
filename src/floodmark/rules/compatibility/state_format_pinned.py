"""Finds a format of the state that has no effect."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import PROVIDER_CLASS, SHUFFLE_PARTITIONS, SOURCE_EVOLUTION
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM343",
    "state-format-pinned",
    Severity.ADVICE,
    finds="A setting of how state is written that is not what the checkpoint pins.",
    matters="The newest offset entry carries the formats that the state was written with.",
    restart="Spark goes on with the checkpoint's values and ignores the new ones.",
    instead="Nothing. `floodmark migrate` makes a checkpoint with the formats of the new code.",
)

# Other rules judge these.
_OF_OTHERS = (PROVIDER_CLASS, SHUFFLE_PARTITIONS, SOURCE_EVOLUTION)


def check(comparison: Comparison) -> Iterator[Reason]:
    if not comparison.is_stateful:
        return
    for key, pinned in sorted(comparison.checkpoint.conf.items()):
        chosen = comparison.new.conf.get(key)
        if key in _OF_OTHERS or chosen in (None, pinned):
            continue
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"The session says {key} = {chosen}; the checkpoint pins {pinned}.",
            f"{OFFSETS}/{comparison.checkpoint.latest_batch}",
            silent=True,
        )
