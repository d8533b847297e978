"""Which columns decide a key's partition: whether the rows of a state show it.

With spark.sql.streaming.statefulOperator.useStrictDistribution = true Spark hashes all grouping
columns. With false, as in every checkpoint that Spark before 3.3 began, it takes the partitions
that it finds below the operator, if they are made of some of those columns:
`df.repartition("a").groupBy("a", "b")` spreads the keys by `a` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log2

from floodmark.checkpoint.conf_keys import STRICT_DISTRIBUTION
from floodmark.checkpoint.layout import JOIN_STORES
from floodmark.errors import WouldLose
from floodmark.statestore.rewrite.stores import StoreToRewrite

STRICT = STRICT_DISTRIBUTION
BY_ALL_KEYS = "hashed-by-all-keys"
# Rows lie where another hash puts them by chance alone once in 2 ** 20 times.
_BITS = 20


def require_hashed_by_all_keys(stores: Iterable[StoreToRewrite], conf: Mapping[str, str]) -> None:
    """Refuses a state that some of its grouping columns alone may have spread.

    That its rows lie where the hash of all columns puts them is compared elsewhere, row by row:
    here it is asked whether they are enough to prove anything.
    """
    if conf.get(STRICT) == "true":
        return
    for store in stores:
        # A join hashes all of its keys in every Spark; one column has no part to be hashed alone.
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
        f"operator {store.at.operator}: which columns decide a key's partition is not known",
        f"{STRICT} is not true here, so Spark may hash only some of the grouping columns: "
        'repartition("a").groupBy("a", "b") hashes a alone. '
        f"{shows} which ones. Keys in the wrong partition would be counted from zero again.",
        "If nothing below the grouping repartitions by some of its columns: "
        f"--accept {BY_ALL_KEYS}. Otherwise keep the number of partitions.",
    )
