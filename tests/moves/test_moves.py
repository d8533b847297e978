"""Run, move, run on: what the plan said of the sink is what the sink got, row for row.

Eight cases run with every `make test`; `make soak` runs all of them and prints the table of
docs/reliability.md. FLOODMARK_MOVES_ONLY (part of a stream's name) narrows it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moves.campaign import SHAPES, Campaign, Outcome, Stream, streams, verbs_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ONLY = os.environ.get("FLOODMARK_MOVES_ONLY", "")
STATELESS, DISTINCT, UPDATE, COMPLETE = SHAPES
SHORT = {
    Stream("file", STATELESS, False, True): ("restore in place", "restore elsewhere"),
    Stream("once.sql", UPDATE, True, False): ("restore in place", "upgrade"),
    Stream("delta", DISTINCT, False, True): ("rewind", "restore elsewhere"),
    Stream("append", COMPLETE, True, False): ("restore in place", "copy"),
}
Begin = Callable[[Stream], Campaign]


@pytest.fixture
def begin(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Begin:
    def begun(stream: Stream) -> Campaign:
        kafka = request.getfixturevalue("kafka") if stream.sink == "kafka" else None
        campaign = Campaign(stream, spark, tmp_path / "stream", kafka)
        campaign.prepare()
        return campaign

    return begun


def require_said(stream: Stream, verb: str, outcome: Outcome) -> None:
    assert outcome.differences == 0, (str(stream), verb, outcome)


@pytest.mark.parametrize("stream", SHORT, ids=str)
def test_the_sink_gets_what_the_plan_said(stream: Stream, begin: Begin) -> None:
    campaign = begin(stream)
    for verb in SHORT[stream]:
        require_said(stream, verb, campaign.moved_by(verb))


@pytest.fixture(scope="module")
def table() -> Iterator[Counter[tuple[str, str]]]:
    found: Counter[tuple[str, str]] = Counter()
    yield found
    for (verb, column), number in sorted(found.items()):
        print(f"\n{verb}: {column} {number}", end="")


@pytest.mark.soak
@pytest.mark.services
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stream", [one for one in streams() if ONLY in str(one)], ids=str)
def test_every_move(stream: Stream, begin: Begin, table: Counter[tuple[str, str]]) -> None:
    campaign = begin(stream)
    failed = []
    for verb in verbs_for(stream):
        outcome = campaign.moved_by(verb)
        said = f"{len(outcome.again)} again, {len(outcome.skipped)} skipped"
        print(f"\n{stream}, {verb}: {said}, {outcome.differences} unsaid", end="", flush=True)
        table[verb, "cases"] += 1
        table[verb, "repeated as said"] += bool(outcome.again)
        table[verb, "skipped as said"] += bool(outcome.skipped)
        table[verb, "differences unsaid"] += outcome.differences
        if outcome.differences:
            failed.append((verb, outcome))
    assert not failed, (str(stream), failed)
