"""Plans `convert`: the same state, stored by the other provider.

`--state-format` also changes the names of the files: by version, or by version and unique id,
which RocksDB has since Spark 4.0.
"""

from __future__ import annotations

from floodmark.changes.carry.origin import Origin
from floodmark.changes.plan import Plan
from floodmark.changes.planners.rewritten_state import (
    StateRewrite,
    course_of,
    operators_of,
    plan_rewritten,
)
from floodmark.checkpoint.conf_keys import PROVIDER_CLASS, STATE_FORMAT
from floodmark.errors import NoAnswer, WrongUse
from floodmark.statestore.rewrite.operator_stores import require_rewritable
from floodmark.statestore.write import HDFS, ROCKSDB

_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
CLASSES = {
    HDFS: f"{_PACKAGE}.HDFSBackedStateStoreProvider",
    ROCKSDB: f"{_PACKAGE}.RocksDBStateStoreProvider",
}
WORDS = {HDFS: "HDFS files", ROCKSDB: "RocksDB"}


def require_provider(provider: str) -> None:
    if provider not in CLASSES:
        raise WrongUse(
            f"--provider {provider}: Spark has {HDFS} and {ROCKSDB}",
            "Floodmark does not know how another provider stores its state.",
            f"Choose --provider {HDFS} or --provider {ROCKSDB}.",
        )


def plan_convert(origin: Origin, new: str, provider: str, state_format: int | None = None) -> Plan:
    require_provider(provider)
    course = course_of(origin)
    operators = operators_of(origin, course)
    stores = [store for one in operators for store in one.stores]
    had_ids = any(store.at.unique_ids for store in stores)
    ids = has_unique_ids(provider, state_format, had_ids)
    if {store.at.provider for store in stores} == {provider} and ids == had_ids:
        raise NoAnswer(
            f"{origin.checkpoint.path} keeps its state in {WORDS[provider]} already, in "
            f"format {2 if ids else 1}",
            "There is nothing to rewrite.",
            "`floodmark copy` makes a copy of it.",
        )
    for one in operators:
        require_rewritable(one.stores, provider, moves=False)
    turn = StateRewrite(
        "convert",
        f"A new checkpoint with its state in {WORDS[provider]}"
        + (", with unique ids" if ids else ""),
        {"provider": provider, "state_format": state_format},
        {PROVIDER_CLASS: CLASSES[provider]},
        provider,
        None,
        ids,
        f"in {WORDS[provider]}",
        provider_notes(provider, ids, had_ids),
    )
    return plan_rewritten(origin, new, course, operators, turn)


def has_unique_ids(provider: str, state_format: int | None, had: bool) -> bool:
    if state_format not in (None, 1, 2):
        raise WrongUse(
            f"--state-format {state_format}: Spark has 1 and 2",
            "1 names a state's files by version, 2 by version and a unique id.",
            "Choose one of them, or leave the option out: the format stays as it is.",
        )
    if provider == HDFS:
        if state_format == 2:
            raise WrongUse(
                "--state-format 2: only RocksDB keeps state with unique ids",
                "HDFSBackedStateStoreProvider names its files by version alone.",
                "Leave the option out, or choose --provider rocksdb.",
            )
        return False
    return had if state_format is None else state_format == 2


def provider_notes(provider: str, ids: bool, had: bool) -> tuple[str, ...]:
    notes = [f"The checkpoint pins {PROVIDER_CLASS} to {WORDS[provider]}."]
    if ids != had:
        notes.append(
            f"Start it with {STATE_FORMAT}={2 if ids else 1}: Spark before 4.3 goes by the session."
        )
    if ids and not had:
        notes.append("It is for Spark 4.1 and later: 4.0 reads only zips that it wrote itself.")
    return tuple(notes)
