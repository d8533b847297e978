"""Run, move, run on: what the plan said of the sink is what the sink got, row for row.

Nine cases run with every `make test`; `make soak` runs all of them and prints the table of
docs/reliability.md. FLOODMARK_MOVES_ONLY (part of a stream's name) narrows it, and
FLOODMARK_MOVES_VERBS (words of a verb's name) the verbs.
"""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floodmark.errors import BatchPurged, NoAnswer, StateFileMissing
from moves.campaign import Campaign, FailedAsSaid, Services
from moves.streams import SHAPES, Stream, streams
from moves.verbs import parted, verbs_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ONLY = os.environ.get("FLOODMARK_MOVES_ONLY", "")
VERBS = os.environ.get("FLOODMARK_MOVES_VERBS", "")
STATELESS, DISTINCT, UPDATE, COMPLETE, WINDOWS = SHAPES
SHORT = {
    Stream("file", STATELESS, False, True): ("restore in place", "rewind --to-offsets"),
    Stream("once.sql", UPDATE, True, False): ("restore in place", "upgrade"),
    Stream("delta", DISTINCT, False, True): ("rewind then restore in place", "restore elsewhere"),
    Stream("append", COMPLETE, True, False): ("restore in place", "copy"),
    Stream("once.delta", WINDOWS, False, False): ("rewind --keep-identity",),
}
Begin = Callable[[Stream, Services], Campaign]


@pytest.fixture
def begin(spark: SparkSession, tmp_path: Path) -> Begin:
    def begun(stream: Stream, services: Services) -> Campaign:
        campaign = Campaign(stream, spark, tmp_path / "stream", services)
        campaign.prepare()
        return campaign

    return begun


@pytest.mark.parametrize("stream", SHORT, ids=str)
def test_the_sink_gets_what_the_plan_said(stream: Stream, begin: Begin) -> None:
    campaign = begin(stream, Services())
    for verb in SHORT[stream]:
        outcome = campaign.moved_by(verb)
        assert not outcome.unsaid, (str(stream), verb, outcome)


@pytest.fixture(scope="module")
def table() -> Iterator[Counter[tuple[str, str]]]:
    found: Counter[tuple[str, str]] = Counter()
    yield found
    for (verb, column), number in sorted(found.items()):
        print(f"\n{verb}: {column} {number}", end="")


@pytest.fixture
def services(request: pytest.FixtureRequest, stream: Stream) -> Services:
    kafka = database = None
    if "kafka" in (stream.sink, stream.source):
        kafka = request.getfixturevalue("kafka")
    if stream.sink == "once.sql":
        database = request.getfixturevalue("postgres").create_database("moves")
    return Services(kafka, database)


@pytest.mark.soak
@pytest.mark.services
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stream", [one for one in streams() if ONLY in str(one)], ids=str)
def test_every_move(
    stream: Stream, begin: Begin, services: Services, table: Counter[tuple[str, str]]
) -> None:
    campaign = begin(stream, services)
    failed = []
    for verb in verbs_for(stream):
        if not all(word in verb for word in VERBS.split()):
            continue
        table[verb, "cases"] += 1
        try:
            outcome = campaign.moved_by(verb)
        except (BatchPurged, NoAnswer, StateFileMissing, FailedAsSaid) as error:
            # The move before has left it out, or Spark has: there is nothing to go back to; or
            # the query between the two failed, as the plan of the first had said.
            if len(parted(verb)) == 1:
                raise
            what = "failed as said" if isinstance(error, FailedAsSaid) else "refused"
            table[verb, what] += 1
            print(f"\n{stream}, {verb}: {what}", end="", flush=True)
            continue
        except Exception:
            table[verb, "failed"] += 1
            failed.append((verb, traceback.format_exc()))
            print(f"\n{stream}, {verb}: failed", end="", flush=True)
            continue
        said = f"{len(outcome.again)} again, {len(outcome.skipped)} skipped"
        print(f"\n{stream}, {verb}: {said}, {outcome.differences} unsaid", end="", flush=True)
        table[verb, "repeated as said"] += bool(outcome.again)
        table[verb, "skipped as said"] += bool(outcome.skipped)
        table[verb, "differences unsaid"] += outcome.differences
        if outcome.differences:
            failed.append((verb, str(outcome)))
    assert not failed, "\n".join(f"{stream}, {verb}: {what}" for verb, what in failed)
