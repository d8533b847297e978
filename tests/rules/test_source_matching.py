"""Sources are matched by what they read; a plan without a branch is the plan before it came."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from broken.meeting import meeting, source
from floodmark.changes.sources.out_of_reach import OTHER_SOURCES
from floodmark.checkpoint.plan.tree import (
    COLUMN,
    OUTPUT,
    Expression,
    Input,
    PlanStep,
    PlanTree,
    Watermark,
)
from floodmark.rules.registry import rules_of
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.kept_branches import without_branches
from floodmark.rules.restarts.reason import Verdict
from floodmark.rules.restarts.source_matching import SourceMatching
from floodmark.rules.restarts.verdict import judge_restart, judge_sources

NAMED = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
}
A, B, C = '{"a":{"0":1}}', '{"b":{"0":2}}', '{"logOffset":4}'


def kafka(topics: str, **options: str) -> Any:
    return source("kafka", topics, **options)


def met(offsets: tuple[str, ...], old: Any, new: tuple[Any, ...], **more: Any) -> Comparison:
    said = {"none": True} if old is None else {"sources": old}
    return meeting(offsets, said, {"sources": new}, **more)


def matched(*found: Any, **more: Any) -> SourceMatching:
    return met(*found, **more).sources


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not noted"])
def test_kafka_is_known_by_its_topics(noted: bool) -> None:
    def of(offsets: tuple[str, ...], old: str, new: str) -> SourceMatching:
        was = tuple(map(kafka, old)) if noted else None
        return matched(offsets, was, tuple(map(kafka, new)))

    assert of((A,), "a", "ab").pairs == (0, None)
    assert of((A,), "a", "ba").pairs == (None, 0)
    assert of((A, B), "ab", "b") == SourceMatching((1,), (0,))
    assert of((A, B), "ab", "ba").pairs == (1, 0)
    assert of((A, B), "ab", "bc") == SourceMatching((1, None), (0,))
    assert of((A, B), "ab", "ab").is_same


def test_a_pattern_and_an_assignment_are_matched_by_the_topics_that_were_read() -> None:
    pattern = replace(kafka("x"), options={"subscribepattern": "a.*"})
    assigned = replace(kafka("x"), options={"assign": '{"b":[0]}'})
    assert matched((A, B), None, (assigned, pattern)).pairs == (1, 0)


def test_files_are_known_by_their_folder_or_by_a_file_that_was_read() -> None:
    one, two = source("json", "/data/a"), source("json", "/data/b")
    assert matched((C,), (one,), (two, one)).pairs == (None, 0)
    assert matched((C,), None, (two, one), seen={0: "file:/data/a/1.json"}).pairs == (None, 0)
    written = source("json", "file:///data/a/")
    assert matched((C,), (one,), (two, written)).pairs == (None, 0)
    relative = source("json", "data/a")
    assert matched((C,), (one,), (two, relative)).pairs == (None, 0)


def test_a_folder_in_a_folder_is_no_new_source() -> None:
    """Its files would be read twice: the rule of places judges it, as it did."""
    found = met((C,), (source("json", "/data"),), (source("json", "/data/sub"),))
    assert found.sources.is_same
    assert "source-place-changed" in {one.rule for one in judge_restart(found).reasons}


def test_delta_is_known_by_its_table() -> None:
    offset = (
        '{"sourceVersion":1,"reservoirId":"t-1","reservoirVersion":3,"index":-1,'
        '"isStartingVersion":false}'
    )
    new = (source("delta", "/other"), source("delta", "/moved"))
    assert matched((offset,), None, new, tables={0: "t-2", 1: "t-1"}).pairs == (None, 0)
    noted = (source("delta", "/moved"),)
    assert matched((offset,), noted, new).pairs == (None, 0)


def test_two_reads_of_one_topic_are_told_apart_by_their_options_or_not_at_all() -> None:
    plain, other = kafka("a"), kafka("a", includeheaders="true")
    both = (A, '{"a":{"0":7}}')
    assert matched(both, (plain, other), (other, plain)).pairs == (1, 0)
    assert matched(both, (plain, plain), (plain, plain)).is_same
    gone = met(both, (plain, plain), (plain,))
    assert gone.sources.unclear
    judged = judge_restart(gone)
    assert [one.verdict.value for one in judged.reasons] == ["needs-migration"]
    assert judged.command is not None
    assert "--start NEW=source:OLD" in judged.command
    told = replace(gone, told_sources={0: 1})
    assert told.sources == SourceMatching((1,), (0,))
    more = met((A,), (plain,), (plain, plain))
    assert more.sources.unclear


def test_named_sources_are_matched_by_name() -> None:
    named = {name: replace(kafka(name), name=name) for name in "ab"}
    lines = tuple(f"{name}:{text}" for name, text in (("a", A), ("b", B)))
    found = meeting(
        lines,
        {"sources": (named["a"], named["b"])},
        {"sources": (named["b"], replace(kafka("c"), name="c"))},
        version=2,
        pins={"spark.sql.shuffle.partitions": "2"},
    )
    assert found.sources == SourceMatching((1, None), (0,))


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "no note"])
@pytest.mark.parametrize(
    ("line", "was", "now"),
    [
        (A, "kafka", "delta"),
        (A, "kafka", "json"),
        ('{"logOffset":3}', "json", "kafka"),
        ('{"logOffset":3}', "csv", "rate"),
        ('{"offset":3,"timestamp":5}', "rate-micro-batch", "text"),
    ],
)
def test_a_name_that_another_kind_of_source_has_now(
    line: str, was: str, now: str, noted: bool
) -> None:
    """The name is the same, and the new source cannot read the old one's offset."""
    other = replace(kafka("b"), name="b")
    found = meeting(
        (f"a:{line}", f"b:{B}"),
        {"sources": (replace(source(was), name="a"), other)} if noted else {"none": True},
        {"sources": (other, replace(source(now), name="a"))},
        version=2,
        pins=NAMED,
    )
    assert found.sources == SourceMatching((1, None), (0,))
    (told,) = [one for one in judge_restart(found).reasons if one.code == "FM302"]
    assert told.what.startswith(f"Source a is {now} in the new code")
    assert (told.verdict, told.where) == (Verdict.NEEDS_MIGRATION, "sources/a")


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ('{"logOffset":3}', "csv"),  # both are files
        (A, "eventhubs"),  # their offsets look the same, and nobody has said which it was
        ('{"pos": 3}', "mine"),  # a source written in Python can be anything
    ],
)
def test_a_name_whose_kind_may_be_the_same(line: str, now: str) -> None:
    new = {"sources": (replace(source(now), name="a"),)}
    found = meeting((f"a:{line}",), {"none": True}, new, version=2, pins=NAMED)
    assert found.sources == SourceMatching((0,))
    assert "FM302" not in {one.code for one in judge_restart(found).reasons}


def test_check_gives_the_command() -> None:
    found = met((A, B), (kafka("a"), kafka("b")), (kafka("a"), kafka("c")))
    judged = judge_restart(replace(found, application=("new app.py",)))
    assert judged.verdict.value == "needs-migration"
    place = found.checkpoint.path
    command = f"floodmark migrate {place} {place}-new --app 'new app.py' --accept dropped-source"
    assert judged.command == command
    assert command in judged.reasons[0].do


def test_where_a_new_source_begins_is_said() -> None:
    reasons = judge_restart(met((A,), (kafka("a"),), (kafka("a"), kafka("b")))).reasons
    assert [one.rule for one in reasons] == ["source-count-changed"]
    assert "latest, because startingOffsets is not set" in reasons[0].what
    set_ = kafka("b", startingoffsets="earliest")
    reasons = judge_restart(met((A,), (kafka("a"),), (kafka("a"), set_))).reasons
    assert "startingoffsets earliest" in reasons[0].what


def test_what_else_changed_is_still_seen() -> None:
    changed = kafka("a", includeheaders="true")
    found = judge_restart(met((A,), (kafka("a"),), (changed, kafka("b"))))
    assert {one.rule for one in found.reasons} == {"source-count-changed", "source-options-changed"}
    assert "Source 0" in next(o.what for o in found.reasons if o.rule == "source-options-changed")


# -- plans -----------------------------------------------------------------------------------


def column(number: int, name: str = "v") -> Expression:
    return Expression(COLUMN, (("source", str(number)), ("name", f'"{name}"')), label=name)


def read(number: int) -> Input:
    return Input(PlanStep("Source", (("number", str(number)),)))


def output(of: str) -> Expression:
    return Expression(OUTPUT, (("of", of),))


def union(*branches: tuple[Input, Expression]) -> Input:
    roles = tuple((f"columns of branch {at}", (one,)) for at, (_, one) in enumerate(branches))
    return Input(PlanStep("Union", (), roles, tuple(fed for fed, _ in branches)))


def total(below: Input, of: Expression, number: int = 0) -> PlanTree:
    step = PlanStep(
        "Aggregate",
        expressions=(("keys", ()), ("functions", (Expression("Sum", (), (of,)),))),
        inputs=(below,),
        stateful=True,
    )
    return PlanTree(Input(step), (output(f"Aggregate {number} function 0"),))


def test_a_union_with_one_branch_more_is_the_plan_without_it() -> None:
    old = total(read(0), column(0))
    both = union((read(0), column(0)), (read(1), column(1)))
    new = total(both, output("Union 0 column 0"))
    assert without_branches(new, {1}) == without_branches(old, set())
    front = union((read(0), column(0)), (read(1), column(1)))
    moved = total(front, output("Union 0 column 0"))
    assert without_branches(moved, {0}) == without_branches(old, set(), {0: 1})


def test_branches_in_another_order_are_the_same_plan() -> None:
    old = total(union((read(0), column(0)), (read(1), column(1))), output("Union 0 column 0"))
    new = total(union((read(0), column(0)), (read(1), column(1))), output("Union 0 column 0"))
    assert without_branches(old, set(), {0: 1, 1: 0}) == without_branches(new, set())
    # …and what one of them does with its rows is not the other's.
    other = Expression("Add", (), (column(1), column(1)))
    changed = total(union((read(0), column(0)), (read(1), other)), output("Union 0 column 0"))
    assert without_branches(old, set(), {0: 1, 1: 0}) != without_branches(changed, set())


def test_unions_in_unions_are_one() -> None:
    inner = union((read(0), column(0)), (read(1), column(1)))
    nested = Input(
        PlanStep(
            "Union",
            (),
            (
                ("columns of branch 0", (output("Union 1 column 0"),)),
                ("columns of branch 1", (column(2),)),
            ),
            (inner, read(2)),
        )
    )
    new = total(nested, output("Union 0 column 0"))
    flat = union((read(0), column(0)), (read(1), column(1)))
    assert without_branches(new, {2}) == without_branches(
        total(flat, output("Union 0 column 0")), set()
    )


def test_filters_and_watermarks_above_a_union_stay() -> None:
    mark = Watermark(output("Union 0 column 0"), "v", 1000)
    both = union((read(0), column(0)), (read(1), column(1)))
    fed = Input(both.step, (Expression("IsNotNull", (), (output("Union 0 column 0"),)),), (mark,))
    new = without_branches(total(fed, output("Union 0 column 0")), {1})
    [below] = new.root.step.inputs
    assert below.conditions == (Expression("IsNotNull", (), (column(0),)),)
    assert [one.column for one in below.watermarks] == [column(0)]


def test_a_join_with_a_new_source_is_no_branch() -> None:
    step = PlanStep("Join", (), (("condition", ()),), (read(0), read(1)), stateful=True)
    tree = PlanTree(Input(step), (column(0),))
    assert without_branches(tree, {1}).stateful
    assert len(without_branches(tree, {1}).steps("Source")) == 2


def test_a_plan_whose_numbers_cannot_be_told_is_left_as_it_is() -> None:
    strange = total(read(0), output("Union 7 column 0"))
    assert without_branches(strange, {1}) is strange


DELTA = (
    '{"sourceVersion":1,"reservoirId":"t-1","reservoirVersion":3,"index":-1,'
    '"isStartingVersion":false}'
)


@pytest.mark.parametrize(
    ("offset", "old", "new", "word", "others"),
    [
        (A, kafka("a"), kafka("z"), "Kafka|topic", "Wrong basePath|Delta|folder"),
        (C, source("json", "/one"), source("json", "/two"), "Wrong basePath", "Kafka|Delta"),
        (DELTA, source("delta", "/one"), source("delta", "/two"), "table", "Kafka|basePath"),
    ],
    ids=["kafka", "files", "delta"],
)
def test_a_changed_place_is_told_in_the_words_of_its_kind_alone(
    offset: str, old: Any, new: Any, word: str, others: str
) -> None:
    judged = judge_restart(met((offset,), (old,), (new,)))
    (found,) = (one for one in judged.reasons if one.rule == "source-place-changed")
    assert re.search(word, found.why)
    assert not re.search(others, found.why)


@pytest.mark.parametrize(
    ("offsets", "made", "others"),
    [
        ((A, B), kafka, "basePath|Delta"),
        ((C, C), lambda name: source("json", f"/{name}"), "Kafka|Delta|table"),
    ],
    ids=["kafka", "files"],
)
def test_exchanged_places_are_told_in_the_words_of_their_kind_alone(
    offsets: tuple[str, ...], made: Any, others: str
) -> None:
    found = met(offsets, (made("a"), made("b")), (made("b"), made("a")))
    reasons = [one for one in judge_sources(found).reasons if one.rule == "sources-reordered"]
    assert len(reasons) == 2
    assert not any(re.search(others, one.why) for one in reasons)


def test_a_source_that_only_its_kind_tells_is_assumed() -> None:
    known = met((C,), (source("json", "/one"),), (source("json", "/one"),))
    assert not known.sources.assumed
    assert met((C,), None, (source("json", "/one"),)).sources.assumed == {0}
    assert not met((A,), None, (kafka("a"),)).sources.assumed


def test_a_kind_that_the_user_has_said_is_no_look_alike() -> None:
    hubs = source("eventhubs", "x")
    unsaid = met((A,), None, (hubs,))
    assert unsaid.sources.is_same
    said = replace(unsaid, said_kinds=frozenset({"0"}))
    assert "source-kind-changed" in {one.rule for one in judge_sources(said).reasons}


def test_the_names_that_upgrade_accepts_are_rules_of_sources() -> None:
    assert set(OTHER_SOURCES) <= {rule.rule.name for rule in rules_of("compatibility")}
