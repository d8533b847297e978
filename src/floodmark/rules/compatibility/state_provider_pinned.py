"""Finds a state store provider that has no effect."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import PROVIDER_CLASS
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM342",
    "state-provider-pinned",
    Severity.ADVICE,
    finds="spark.sql.streaming.stateStore.providerClass set to another class than the "
    "checkpoint pins.",
    matters="The files of one provider mean nothing to the other.",
    restart="Spark goes on with the checkpoint's provider and ignores the new one.",
    instead="Nothing, if the old provider may stay. `floodmark convert` makes a checkpoint with "
    "the other, and so does `migrate --provider` for changed code.",
)


_NAMES = {"HDFSBackedStateStoreProvider": "hdfs", "RocksDBStateStoreProvider": "rocksdb"}


def check(comparison: Comparison) -> Iterator[Reason]:
    values = comparison.pinned_and_chosen(PROVIDER_CLASS)
    if values is not None:
        pinned, chosen = values
        yield reason(
            RULE,
            Verdict.COMPATIBLE,
            f"The session says {_short(chosen)}; the state is kept by {_short(pinned)}.",
            f"{OFFSETS}/{comparison.checkpoint.latest_batch}",
            silent=True,
            migrate=(f"--provider {_NAMES[_short(chosen)]}",) if _short(chosen) in _NAMES else None,
        )


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]
