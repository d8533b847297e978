"""How a drill compares sinks, and what it advises: no Spark."""

from __future__ import annotations

import pytest

from floodmark.drills.advice import DrilledSink, advice_for
from floodmark.drills.comparing import compare_sinks, point_result

ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}]


def test_equal_sinks_do_not_differ_whatever_their_order() -> None:
    assert not compare_sinks(ROWS, reversed(ROWS)).differ


def test_lost_repeated_and_wrong_rows_are_told_apart() -> None:
    found = compare_sinks(ROWS, [ROWS[0], ROWS[1], ROWS[1], {"id": 9, "v": "z"}, ROWS[1]])
    assert (found.lost, found.repeated, found.wrong) == (1, 2, 1)
    assert found.lost_rows == (ROWS[2],)
    assert found.repeated_rows == (ROWS[1],)
    assert found.wrong_rows == ({"id": 9, "v": "z"},)
    assert found.only_in == (), "lost and wrong rows have nothing in common"


def test_a_column_that_differs_from_run_to_run_is_named_and_ignored() -> None:
    before = [{**row, "at": number} for number, row in enumerate(ROWS)]
    after = [{**row, "at": number + 100} for number, row in enumerate(ROWS)]
    found = compare_sinks(before, after)
    assert (found.lost, found.wrong, found.only_in) == (3, 3, ("at",))
    result = point_result("after-sink", 1, {"out": found})
    (words,) = advice_for([result], [DrilledSink("out", "delta", "function")], ["kafka"])
    assert "--ignore at" in words
    assert not compare_sinks(before, after, ["at"]).differ
    assert compare_sinks(before, [*after, after[0]]).only_in == ("at",), "repeated rows hide it not"


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        (DrilledSink("out", "delta", "function"), "once.delta"),
        (DrilledSink("out", "sqlite", "function"), "once.sql"),
        (DrilledSink("out", "parquet", "function"), 'writeStream.format("parquet")'),
        (DrilledSink("out", "lines", "function"), "batch id into the path"),
        (DrilledSink("out", "delta", "spark"), "report it"),
    ],
)
def test_advice_names_what_mends_it(sink: DrilledSink, words: str) -> None:
    found = compare_sinks(ROWS, [*ROWS, ROWS[0]])
    (advice,) = advice_for([point_result("after-sink", 1, {"out": found})], [sink], ["json"])
    assert words in advice
    assert advice.startswith("out: ")


def test_a_survivor_gets_no_advice() -> None:
    result = point_result("after-sink", 1, {"out": compare_sinks(ROWS, ROWS)})
    assert result.survived
    assert not list(advice_for([result], [DrilledSink("out", "delta", "spark")], ["json"]))


def test_a_restart_that_fails_is_no_survival() -> None:
    result = point_result("after-offset", 1, {}, "the restart fails: offsets out of order")
    assert result.survived is False
    assert "out of order" in " ".join(advice_for([result], [], ["json"]))


def test_a_socket_is_to_blame_and_not_the_sink() -> None:
    lost = point_result("after-offset", 1, {"out": compare_sinks(ROWS, ROWS[:1])})
    (words,) = advice_for([lost], [DrilledSink("out", "parquet", "spark")], ["socket"])
    assert "non-replayable-source" in words
