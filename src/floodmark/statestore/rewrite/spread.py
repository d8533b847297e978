"""Checks whether the rows of a state show which columns decide a key's partition.

With spark.sql.streaming.statefulOperator.useStrictDistribution = true Spark hashes all grouping
columns. With false, as in every checkpoint that Spark before 3.3 began, it uses the partitions
below the operator, if some of those columns make them: `df.repartition("a").groupBy("a", "b")`
spreads the keys by `a` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log2

from floodmark.checkpoint.conf_keys import STRICT_DISTRIBUTION
from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.errors import WouldLose
from floodmark.statestore.rewrite.operator_stores import StoreToRewrite

STRICT = STRICT_DISTRIBUTION
BY_ALL_KEYS = "hashed-by-all-keys"
# By chance, rows are where another hash puts them once in 2 ** 20 times.
_BITS = 20


def require_hashed_by_all_keys(stores: Iterable[StoreToRewrite], conf: Mapping[str, str]) -> None:
    """Refuse a state that only some of its grouping columns may have spread.

    Other code compares, row by row, whether the rows are where the hash of all columns puts them.
    This function checks whether there are enough rows to prove it.
    """
    if conf.get(STRICT) == "true":
        return
    for store in stores:
        # Every Spark hashes all keys of a join, and a single column has no parts.
        columns = max((len(grouping.fields) for grouping in store.groupings), default=0)
        if store.is_keyless or store.name in JOIN_STORES or columns < 2:
            continue
        if not _proves(store):
            raise _not_proven(store)


def _proves(store: StoreToRewrite) -> bool:
    count = len(store.partitions)
    if count < 2:
        return False
    wanted = _BITS / log2(count)
    rows = 0
    for partition in store.partitions:
        with store.at.open(partition) as opened:
            for records in opened.records():
                rows += len(records)
                if rows >= wanted:
                    return True
    return False


def _not_proven(store: StoreToRewrite) -> WouldLose:
    count = len(store.partitions)
    shows = (
        "The state has one partition, so it does not show"
        if count == 1
        else f"The state has too few keys in its {count} partitions to show"
    )
    return WouldLose(
        f"operator {store.at.operator}: it is not known which columns decide a key's partition",
        f"{STRICT} is not true here, so Spark may hash only some of the grouping columns: "
        f'repartition("a").groupBy("a", "b") hashes a alone. {shows} which ones. Spark '
        "would count keys in the wrong partition from zero again.",
        "If nothing below the grouping repartitions by some of its columns: "
        f"--accept {BY_ALL_KEYS}. Otherwise keep the number of partitions.",
    )
