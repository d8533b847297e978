"""Changes of code made by machine: a yes of `check` must lead to what the new code computes alone.

A mutation by name: `PYTHONPATH=tests python -m compatibility.mutations --only totals/function-1`.
The campaign: FLOODMARK_MUTATIONS_SEED, _NUMBER and _PART (2/3: the second third) narrow it.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from compatibility.mutations.campaign import Result, in_order, selected, try_one
from compatibility.mutations.machine import Machine
from compatibility.mutations.mutators import mutations, named
from compatibility.mutations.table import block

pytestmark = pytest.mark.spark
# Harmless ones, and ones that Spark goes on with as if nothing had changed.
SAMPLE = (
    "totals/names-1",
    "totals/refactored-1",
    "totals/limit-1",
    "totals/filter-added-1",
    "unique/comment-1",
    "unique/step-moved-2",
    "plain/json-schema-2",
    "sliding/spelling-1",
    "sliding/duration-6",
    "rolled-up/function-1",
    "wide/by-hand-2",
    "first-last/flag-1",
    "looked-up-left/word-1",
    "union-unique/sides-1",
    "union-unique/filters-swapped-1",
    "exploded/column-6",
    "csv-files/file-schema-1",
    "python-closure/number-1",
    "joined-two-keys/by-hand-1",
    "keys-complete/by-hand-1",
)


@pytest.fixture(scope="module")
def machine(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("mutations"))


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutation(machine: Machine, name: str) -> None:
    one = named(name)
    result = try_one(machine, one)
    assert result.outcome in ("right", "said", "refused"), result
    if one.harmless:
        assert result.verdict in ("same", "compatible"), result


def test_there_are_enough_mutations_with_names_of_their_own() -> None:
    found = mutations()
    assert len(found) > 3000
    assert len({one.name for one in found}) == len(found)
    assert in_order(found, 7) == in_order(found[::-1], 7)


def test_a_sample_reaches_every_query_evenly() -> None:
    queries = {one.query.name for one in mutations()}
    sample = Counter(one.query.name for one in selected(7, 3 * len(queries), "1/1"))
    assert set(sample) == queries
    assert set(sample.values()) == {3}


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_no_yes_is_wrong(machine: Machine) -> None:
    results: list[Result] = []
    for one in selected(
        int(os.environ.get("FLOODMARK_MUTATIONS_SEED", "7")),
        int(os.environ.get("FLOODMARK_MUTATIONS_NUMBER", "700")),
        os.environ.get("FLOODMARK_MUTATIONS_PART", "1/1"),
    ):
        results.append(try_one(machine, one, migrate=True))
        print(results[-1].outcome, results[-1].verdict, one.name, one.what, sep="\t", flush=True)
    print(block(results))
    harmless = [one for one in results if one.harmless and one.counts]
    unknown = [one.name for one in harmless if one.verdict == "unknown"]
    assert [one.name for one in results if "wrong" in (one.outcome, one.migrate)] == []
    assert len(unknown) < 0.15 * max(1, len(harmless)), unknown
