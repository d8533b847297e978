"""What a stranger's note of a start says of the old code: `check` compares it, whatever it is.

`check` itself needs Spark, for the new code. What a note can say reaches its rules, and they run
here without Spark.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from fuzz_mutations import changed

from floodmark.checkpoint.outline import OperatorOutline
from floodmark.checkpoint.plan.tree import COLUMN, Expression, Input, PlanTree
from floodmark.checkpoint.plan.tree_json import tree_to_json
from floodmark.checkpoint.start_note import KIND, LastStart, last_start, packed_tree
from floodmark.cli.check import text
from floodmark.rules.registry import rules_of
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.verdict import judge_restart
from plan_trees import SOURCE, of_step, plan
from rules.examples import example

NAMES = [known.rule.name.replace("-", "_") for known in rules_of("compatibility")]
# An example without a note of a start has nothing to mutate.
EXAMPLES = [name for name in NAMES if example("compatibility", name).MEETING.last is not None]
CASES = 40
TREES = {
    "filter_changed": plan(where=("greater_than(amount, 1)",), watermark=("time", 60_000)),
    "aggregates_changed": plan(functions=("sum(cast(amount))", "min('x')")),
    "dedup_columns_changed": of_step("Deduplicate", keys=("user", "user_id")),
}


def noted(start: LastStart) -> dict[str, Any]:
    """The note that a start leaves, of what it says."""
    return {
        "floodmark": KIND,
        "version": 1,
        "sources": [
            {"kind": one.kind, "options": dict(one.options), "schema_ddl": one.schema_ddl}
            for one in start.sources
        ],
        "sink": start.sink,
        "sink_options": dict(start.sink_options),
        "output_mode": start.output_mode,
        "trigger": start.trigger,
        "schema_json": start.schema_json,
        "spark_version": start.spark_version,
        "conf": dict(start.conf),
        "code_fingerprint": start.fingerprint,
        "tree": packed_tree(start.tree) if start.tree else None,
    }


def judged(meeting: Comparison, note: dict[str, Any]) -> str:
    return text(judge_restart(replace(meeting, last=last_start(note))), "cp", "app.py")


@pytest.mark.parametrize("name", EXAMPLES)
def test_any_note(name: str) -> None:
    meeting: Comparison = example("compatibility", name).MEETING
    assert meeting.last is not None
    rng = Random(name)
    trees = [meeting.last.tree, TREES.get(name, plan())]
    for number in range(CASES):
        note = noted(replace(meeting.last, tree=rng.choice(trees)))
        for _ in range(rng.choice([1, 1, 2, 4])):
            if note.get("tree") and rng.random() < 0.7:
                note["tree"] = changed(rng, note["tree"], "/place")
            else:
                note = changed(rng, note, "/place")
                if not isinstance(note, dict):
                    note = {"tree": note}
        held = tuple(_odd_properties(rng, one) for one in meeting.held)
        began = time.process_time()
        assert judged(replace(meeting, held=held), note), (number, note)
        assert time.process_time() - began < 2, (number, note)


def _odd_properties(rng: Random, operator: OperatorOutline) -> OperatorOutline:
    """What the checkpoint itself says of an operator is as foreign."""
    if rng.random() < 0.5:
        return operator
    said = json.loads(operator.properties_json or '{"stateVariables": [{"stateName": "seen"}]}')
    return replace(operator, properties_json=json.dumps(changed(rng, said, "/place")))


def _tree(*columns: Expression) -> dict[str, Any]:
    return tree_to_json(PlanTree(Input(SOURCE), columns))


def test_expressions_that_hold_each_other_twice() -> None:
    """Forty lines that stand for a million million words."""
    meeting: Comparison = example("compatibility", "projection_changed").MEETING
    assert meeting.last is not None
    one = Expression(COLUMN, (("name", '"a"'), ("source", "0")), label="a")
    for _ in range(40):
        one = Expression("Add", (), (one, one))
    began = time.process_time()
    assert judged(meeting, {**noted(meeting.last), "tree": _tree(one)})
    assert time.process_time() - began < 5


def test_expressions_without_end() -> None:
    meeting: Comparison = example("compatibility", "projection_changed").MEETING
    assert meeting.last is not None
    value = _tree(Expression(COLUMN, (("name", '"a"'), ("source", "0")), label="a"))
    value["expressions"] += [["Not", {}, [at], ""] for at in range(100_000)]
    value["columns"] = [100_000]
    assert judged(meeting, {**noted(meeting.last), "tree": json.loads(json.dumps(value))})
