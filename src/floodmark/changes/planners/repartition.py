"""Plans `repartition`: the same state in another number of partitions.

Every key goes where Spark will look for it: the hash of its grouping columns, modulo N. An
operator that always has one partition, such as a limit, keeps it.
"""

from __future__ import annotations

from collections.abc import Collection

from floodmark.changes.carry.origin import Origin
from floodmark.changes.plan import Plan
from floodmark.changes.planners.rewritten_state import (
    StateRewrite,
    course_of,
    operators_of,
    plan_rewritten,
)
from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.errors import NoAnswer, WrongUse
from floodmark.statestore.rewrite.operator_stores import require_rewritable
from floodmark.statestore.rewrite.spread import BY_ALL_KEYS, require_hashed_by_all_keys
from floodmark.statestore.rewrite.target import MOST_PARTITIONS


def require_number(partitions: int) -> None:
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise WrongUse(
            f"--partitions {partitions}: it has to be between 1 and {MOST_PARTITIONS}",
            "A partition is a task and a folder of its own in every batch.",
            "Two or three times the number of the cluster's cores is a common choice.",
        )


def pinned_note(partitions: int) -> str:
    return (
        f"The checkpoint pins {SHUFFLE_PARTITIONS} to {partitions}: the session's own value does "
        "not matter."
    )


def plan_repartition(
    origin: Origin, new: str, partitions: int, accept: Collection[str] = ()
) -> Plan:
    require_number(partitions)
    course = course_of(origin)
    operators = operators_of(origin, course)
    keyed = [one for one in operators if not one.is_keyless]
    if not keyed:
        raise NoAnswer(
            f"{origin.checkpoint.path}: its state has one partition, and cannot have more",
            "A limit and a total without keys run in one task, whatever the setting says.",
            "Leave it as it is.",
        )
    counts = {len(store.partitions) for one in keyed for store in one.stores}
    if counts == {partitions}:
        raise NoAnswer(
            f"{origin.checkpoint.path} has {partitions} partitions already",
            "There is nothing to rewrite.",
            "`floodmark copy` makes a copy of it.",
        )
    providers = {store.at.provider for one in keyed for store in one.stores}
    if len(providers) != 1:
        raise NoAnswer(
            f"{origin.checkpoint.path}: its operators keep their state in different ways",
            "No Spark writes such a checkpoint.",
            "`floodmark doctor CP` says what is wrong with it; restore it from a backup.",
        )
    provider = providers.pop()
    for one in keyed:
        require_rewritable(one.stores, provider)
        if BY_ALL_KEYS not in accept:
            require_hashed_by_all_keys(one.stores, origin.checkpoint.conf)
    before = " and ".join(map(str, sorted(counts)))
    ids = any(store.at.unique_ids for one in keyed for store in one.stores)
    turn = StateRewrite(
        "repartition",
        f"A new checkpoint with {partitions} partitions of state instead of {before}",
        {"partitions": partitions},
        {SHUFFLE_PARTITIONS: str(partitions)},
        provider,
        partitions,
        ids,
        f"over {partitions} partitions",
        (pinned_note(partitions),),
    )
    return plan_rewritten(origin, new, course, operators, turn)
