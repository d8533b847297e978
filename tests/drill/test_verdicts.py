"""How a drill compares sinks, and what it advises: no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from floodmark.cli.drill import text
from floodmark.drills.advice import DrilledSink, advice_for
from floodmark.drills.sink_difference import compare_sinks, point_result
from floodmark.engine.drill.drill import Drill, generators

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
    found = compare_sinks(before, [*after, after[0]])
    assert (found.repeated, found.only_in) == (1, ("at",)), "repeated rows hide it not"


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


def test_the_file_sink_is_not_proposed_to_a_query_in_update_mode() -> None:
    found = point_result("after-sink", 1, {"out": compare_sinks(ROWS, [*ROWS, ROWS[0]])})
    sink = DrilledSink("out", "json", "function")
    (advice,) = advice_for([found], [sink], ["json"], "Update")
    assert "writeStream" not in advice
    assert "Write a Delta table with once.delta" in advice


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


def test_a_counter_that_goes_on_is_no_clock() -> None:
    """A batch that ran again: its rows have new numbers, and so have all that come after it."""
    before = [{"n": number, "id": number} for number in range(9)]
    ran_twice = [0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7, 8]
    after = [{"n": number, "id": one} for number, one in enumerate(ran_twice)]
    found = compare_sinks(before, after)
    assert (found.lost, found.repeated, found.wrong, found.only_in) == (0, 3, 0, ("n",))
    assert found.repeated_rows == ({"id": 3}, {"id": 4}, {"id": 5})
    result = point_result("after-sink", 1, {"out": found})
    sound = point_result("after-commit", 1, {"out": compare_sinks(before, before)})
    sink = DrilledSink("out", "postgresql", "function")
    words = list(advice_for([result, sound], [sink], ["json"]))
    assert not any("--ignore" in one for one in words), words
    assert "come again with another value in n" in words[0]
    assert "once.sql" in words[1]
    # Where one point alone was tried, it may be a clock's as well: both are said.
    words = list(advice_for([result], [sink], ["json"]))
    assert any("--ignore n" in one for one in words)
    assert any("once.sql" in one for one in words)


def test_a_batch_that_ran_again_last_has_new_numbers_and_no_wrong_rows() -> None:
    before = [{"n": number, "id": number} for number in range(3)]
    found = compare_sinks(before, [*before, {"n": 3, "id": 1}, {"n": 4, "id": 2}])
    assert (found.lost, found.repeated, found.wrong) == (0, 2, 0)


def test_a_total_that_is_counted_twice_is_wrong_and_not_a_clock() -> None:
    before = [{"k": "a", "total": 3}, {"k": "b", "total": 7}]
    found = compare_sinks(before, [before[0], {"k": "b", "total": 12}])
    assert (found.lost, found.repeated, found.wrong) == (1, 0, 1)
    result = point_result("after-sink", 1, {"out": found})
    sound = point_result("after-commit", 1, {"out": compare_sinks(before, before)})
    sink = DrilledSink("out", "delta", "function")
    words = list(advice_for([result, sound], [sink], ["json"]))
    assert not any("--ignore" in one for one in words), words
    assert any("once.delta" in one for one in words)
    more = compare_sinks([*before, {"k": "b", "total": 9}], [*before, {"k": "b", "total": 9},
                                                             {"k": "b", "total": 16}])  # fmt: skip
    assert (more.repeated, more.wrong, more.only_in) == (0, 1, ()), "no row of the undisturbed run"


def test_what_was_not_carried_out_is_no_part_of_the_yes() -> None:
    result = point_result("after-sink", 1, {"out": compare_sinks(ROWS, ROWS)})
    found = Drill(
        "a.py", True, ("json",), (DrilledSink("out", "delta", "function"),), None, None, "none",
        3, 0, 1, (result,), (),
    )  # fmt: skip
    assert text(found).endswith("It survives: nothing was lost, nothing was repeated.")
    told = text(replace(found, refused=("the pipeline connects to db:1 (a.py, line 7)",)))
    assert told.endswith("What was not carried out was not tried.")
    assert "It survives" not in told


def test_each_random_kill_has_a_time_of_its_own() -> None:
    points = ("after-sink", "random", "random", "random")
    drawn = [one.random() for one in generators(7, points)]
    assert len(set(drawn)) == len(points)
    assert drawn == [one.random() for one in generators(7, points)]
    assert drawn != [one.random() for one in generators(8, points)]
