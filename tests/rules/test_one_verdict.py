"""What `migrate` carries, `check` calls needs-migration: both are asked, for the same change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from broken.meeting import join, meeting, operator
from floodmark.changes.matching.operators import MatchOptions, match
from floodmark.changes.matching.shapes import OperatorShape, StoreShape
from floodmark.checkpoint.outline import OperatorOutline
from floodmark.errors import FloodmarkError
from floodmark.rules.restarts.reason import Verdict
from floodmark.rules.restarts.verdict import judge_restart
from floodmark.state.rows.types import parse_struct

Operators = tuple[OperatorOutline, ...]


@dataclass(frozen=True)
class Changed:
    what: str
    old: Operators
    new: Operators
    carried: bool = True
    known: MatchOptions = field(default_factory=MatchOptions)
    """What only the user knows: names, how keys are merged."""


def _after(first: OperatorOutline, *others: OperatorOutline) -> Operators:
    return tuple(replace(one, operator=at) for at, one in enumerate((first, *others)))


def _group(ddl: str) -> OperatorOutline:
    return operator("applyInPandasWithState", value=ddl)


def _variables(mode: str = "NoTime", *timers: str, **values: str) -> OperatorOutline:
    found = {name: ("user string", ddl) for name, ddl in values.items()}
    found |= dict.fromkeys(timers, ("user string, at long!", "nothing long"))
    kept = [{"stateName": one, "stateVariableType": "ValueState"} for one in values]
    properties = {"timeMode": mode, "stateVariables": kept}
    return operator("transformWithStateInPandasExec", families=found, properties=properties)


AGGREGATION = operator(value="sum double, count long!")
DEDUP = operator("dedupe", key="id long", value="__dummy__ string")
TIMERS = ("$procTimers_keyToTimestamp", "$procTimers_timestampToKey")

CHANGES = [
    Changed("a deduplication before an aggregation", (AGGREGATION,), _after(AGGREGATION, DEDUP)),
    Changed("the deduplication removed", _after(AGGREGATION, DEDUP), (AGGREGATION,)),
    Changed("a first deduplication", (), (DEDUP,)),
    Changed("a first aggregation", (), (AGGREGATION,)),
    Changed("a limit after it", (AGGREGATION,), _after(operator("globalLimit"), AGGREGATION)),
    Changed("a second aggregation", (AGGREGATION,), _after(AGGREGATION, AGGREGATION), False),
    Changed("an aggregation becomes a join", (AGGREGATION,), (join(),), False),
    Changed("operators in another order", _after(DEDUP, AGGREGATION), _after(AGGREGATION, DEDUP)),
    Changed(
        "another kind of deduplication",
        (DEDUP,),
        (operator("dedupeWithinWatermark", key="id long", value="expiresAtMicros long!"),),
        False,
    ),
    Changed(
        "an operator nobody knows", (AGGREGATION,), _after(AGGREGATION, operator("mine")), False
    ),
    Changed(
        "a deduplication added and a finer key",
        (AGGREGATION,),
        _after(operator(key="user string, city string"), DEDUP),
        False,
    ),
    Changed("a key widened", (operator(key="w integer"),), (operator(key="w long"),)),
    Changed("a key may be null", (operator(key="w integer!"),), (operator(key="w integer"),)),
    Changed(
        "a key less",
        (operator(key="user string, w integer"),),
        (operator(),),
        known=MatchOptions(merge={"sum": "sum", "count": "sum"}),
    ),
    Changed("a key more", (operator(),), (operator(key="user string, w integer"),), False),
    Changed(
        "a column of a deduplication less",
        (operator("dedupe", key="id long, user string", value="__dummy__ string"),),
        (DEDUP,),
    ),
    Changed(
        "a column of a deduplication more",
        (DEDUP,),
        (operator("dedupe", key="id long, user string", value="__dummy__ string"),),
        False,
    ),
    Changed("a column less in a join", (join(),), (join(value="user string"),)),
    Changed("a column more in a join", (join(value="user string"),), (join(),)),
    Changed("the key of a join widened", (join(key="f integer"),), (join(key="f long"),)),
    Changed(
        "a key of a join less", (join(key="f integer, g integer"),), (join(key="f integer"),), False
    ),
    Changed("a field added", (_group("total long"),), (_group("total long, last long"),)),
    Changed("a field widened", (_group("total integer"),), (_group("total long"),)),
    Changed(
        "a variable's field added",
        (_variables(total="n long"),),
        (_variables(total="n long, last long"),),
    ),
    Changed(
        "timers added",
        (_variables(total="n long"),),
        (_variables("ProcessingTime", *TIMERS, total="n long"),),
    ),
    Changed(
        "timers removed",
        (_variables("ProcessingTime", *TIMERS, total="n long"),),
        (_variables(total="n long"),),
    ),
]


def _shapes(operators: Operators) -> list[OperatorShape]:
    return [
        OperatorShape(
            one.operator,
            one.name,
            tuple(
                StoreShape(
                    store if family.name == "default" else family.name,
                    parse_struct(family.key_json),
                    parse_struct(family.value_json),
                )
                for store, families in one.stores.items()
                for family in families
            ),
        )
        for one in operators
    ]


def _carries(change: Changed, accept: frozenset[str]) -> str:
    try:
        options = replace(change.known, accept=accept)
        match(_shapes(change.old), _shapes(change.new), options)
    except FloodmarkError as error:
        return error.what
    return ""


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.what)
def test_check_and_migrate_agree(change: Changed) -> None:
    new: dict[str, Any] = {"operators": change.new}
    judgement = judge_restart(meeting(held=change.old, new=new))
    accepted = (judgement.command or "").split("--accept ")[1:]
    refused = _carries(change, frozenset(one.split()[0] for one in accepted))
    assert bool(refused) is not change.carried, refused
    wanted = Verdict.NEEDS_MIGRATION if change.carried else Verdict.NEEDS_NEW_CHECKPOINT
    assert judgement.verdict is wanted, judgement.reasons
    assert (judgement.command is not None) is change.carried
    if judgement.command is not None:
        stops = [one for one in judgement.reasons if not one.verdict.is_yes]
        assert all(one.do.startswith("floodmark migrate /ck /ck-new --app ") for one in stops)


def test_a_dropped_operator_is_accepted_in_the_command() -> None:
    judgement = judge_restart(
        meeting(held=_after(AGGREGATION, DEDUP), new={"operators": (AGGREGATION,)})
    )
    assert judgement.command == (
        "floodmark migrate /ck /ck-new --app APP.py --accept dropped-operator"
    )
