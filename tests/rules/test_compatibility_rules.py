"""Every rule of compatibility speaks of its example, and none of a start that changed nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from broken.meeting import CONF, join, meeting, operator, schema, source
from compatibility.changes import ALL
from floodmark.checkpoint.plan.tree import Input, PlanTree
from floodmark.checkpoint.start_note import last_start
from floodmark.diagnosis.held import held_operators, seen_windows
from floodmark.rules.registry import rules_of
from floodmark.rules.restarts.comparison import SCHEMA_CHECK
from floodmark.rules.restarts.differences import DifferenceKind, differences
from floodmark.rules.restarts.reason import Verdict
from floodmark.rules.restarts.rehearsal import Rehearsal
from floodmark.rules.restarts.schema import difference, spark_accepts
from floodmark.rules.restarts.verdict import judge_restart
from floodmark.storage.files import open_files
from floodmark.storage.load import load
from plan_trees import SOURCE, expressions, of_step, plan
from rules.examples import BROKEN, GOLDEN, example

RULES = [known.rule for known in rules_of("compatibility")]

# Spark's "Recovery Semantics after Changes in a Streaming Query", row by row: the rule that
# answers for it, and whether the documentation allows it.
DOCUMENTED = {
    "number or type of sources": ({"source-count-changed", "source-kind-changed"}, False),
    "rate limits": ({"source-limits-changed"}, True),
    "subscribed topics or input path": ({"source-place-changed"}, False),
    "sink from file to Kafka": ({"sink-changed"}, True),
    "sink from Kafka to file": ({"sink-changed"}, False),
    "sink between Kafka and foreach": ({"sink-changed"}, True),
    "output directory of a file sink": ({"sink-directory-changed"}, False),
    "output topic": ({"sink-target-changed"}, True),
    "foreach code": ({"code-changed"}, True),
    "filters": ({"filter-changed"}, True),
    "projections, same output": ({"projection-changed"}, True),
    "projections, other output": ({"output-columns-changed"}, True),
    "grouping keys or aggregates": ({"grouping-keys-changed", "aggregates-changed"}, False),
    "deduplication columns": ({"dedup-columns-changed"}, False),
    "join schema, keys or type": (
        {"join-columns-changed", "join-keys-changed", "join-type-changed"},
        False,
    ),
    "other changes of a join condition": ({"join-condition-changed"}, False),
    "state schema or timeout of groups": ({"group-state-changed", "timeout-kind-changed"}, False),
    "stateful operators": ({"stateful-operators-changed"}, False),
}


def judged(comparison):
    return judge_restart(comparison)


def said(comparison):
    return {one.rule for one in judged(comparison).reasons}


def test_what_did_not_change_is_the_same():
    judgement = judged(meeting())
    assert (judgement.verdict, judgement.reasons) == (Verdict.SAME, ())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_speaks_of_its_example(rule):
    module = example("compatibility", rule.name.replace("-", "_"))
    reasons = [one for one in judged(module.MEETING).reasons if one.rule == rule.name]
    assert reasons
    for one in reasons:
        assert one.code == rule.code
        assert one.what.endswith(".") or one.rule == "refused-in-rehearsal"
        assert one.where
        assert one.do


def test_every_rule_has_one_example():
    there = {path.stem.replace("_", "-") for path in (BROKEN / "compatibility").glob("*.py")}
    assert there == {rule.name for rule in RULES}


@pytest.mark.parametrize("row", DOCUMENTED)
def test_every_documented_row_has_a_rule_with_its_verdict(row):
    names, allowed = DOCUMENTED[row]
    for name in names:
        if name == "sink-changed":
            continue  # one rule for three rows: the next test
        module = example("compatibility", name.replace("-", "_"))
        found = next(one for one in judged(module.MEETING).reasons if one.rule == name)
        if name == "output-columns-changed":
            assert found.verdict is Verdict.UNKNOWN  # only the sink can tell
        else:
            assert found.verdict.is_yes is allowed


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [("parquet", "kafka", True), ("kafka", "parquet", False), ("kafka", "foreachBatch", True)],
)
def test_sinks_as_documented(before, after, allowed):
    comparison = meeting(
        old={"sink": before, "sink_options": {}}, new={"sink": after, "sink_options": {}}
    )
    found = next(one for one in judged(comparison).reasons if one.rule == "sink-changed")
    assert found.verdict.is_yes is allowed


def test_the_rules_that_spark_can_show_are_in_the_matrix():
    shown = {rule for change in ALL for rule in change.rules}
    only_data = {
        "code-changed",
        "last-start-unknown",
        "memory-sink-resumed",
        "moved-state-schema",
        "refused-in-rehearsal",
        "spark-downgraded",
        "spark-upgraded",
        "state-schema-unknown",
        "async-progress-dropped",
    }
    assert {rule.name for rule in RULES} - shown <= only_data


def test_a_memory_sink_goes_on_in_complete_mode_alone():
    memory = {"sink": "memory", "sink_options": {}}
    for mode, refused in (("Append", True), ("Update", True), ("Complete", False)):
        comparison = meeting(old=memory, new={**memory, "output_mode": mode})
        assert ("memory-sink-resumed" in said(comparison)) is refused
        # A rehearsal writes to another sink: that it ran shows nothing.
        tried = replace(comparison, rehearsal=Rehearsal(True, 8, True))
        assert ("memory-sink-resumed" in said(tried)) is refused
        assert "memory-sink-resumed" not in said(comparison.without_sink)


@pytest.mark.parametrize("added", [True, False])
def test_a_ttl_that_comes_or_goes_is_told_as_such(added):
    """Spark keeps a value with a TTL in another form, beside the time at which it expires."""
    variable = {"stateName": "n", "stateVariableType": "ValueState"}
    plain, with_ttl = (
        operator(
            "transformWithStateInPandasExec",
            families={"n": ("user string", value)},
            properties={"stateVariables": [variable]},
        )
        for value in ("n long", "value struct, ttlExpirationMs long")
    )
    held, new = (plain, with_ttl) if added else (with_ttl, plain)
    judgement = judged(meeting(held=(held,), new={"operators": (new,)}))
    words = "has a TTL now, and had none" if added else "has no TTL now, and had one"
    assert [one.what for one in judgement.reasons] == [f"The variable n {words}."]
    # `migrate` refuses it: no command is printed that cannot work.
    assert (judgement.verdict, judgement.command) == (Verdict.NEEDS_MIGRATION, None)


def test_columns_of_a_join_made_another_way_are_told_beside_other_nulls():
    """That a column may be null now says nothing of how it is made."""
    before, after = (of_step("Join", left_columns=(one,)) for one in ("qty", "add(qty, 1)"))
    comparison = meeting(
        held=(join(value="user string, qty long!"),),
        old={"tree": before},
        new={"tree": after, "operators": (join(),)},
    )
    assert {"join-columns-changed", "rows-made-another-way"} <= said(comparison)


def test_several_changes_are_judged_together():
    comparison = meeting(
        new={
            "operators": (operator(key="user long", value="sum long, count long"),),
            "sources": (source(maxfilespertrigger="2"),),
        }
    )
    judgement = judged(comparison)
    assert judgement.verdict is Verdict.NEEDS_MIGRATION
    assert {"grouping-keys-changed", "aggregates-changed", "source-limits-changed"} <= {
        one.rule for one in judgement.reasons
    }
    assert judgement.reasons[0].verdict is Verdict.NEEDS_MIGRATION  # the worst first


def test_schemas_are_compared_as_spark_does():
    assert spark_accepts(schema("a string, b long"), schema("x string!, y long"))
    assert not spark_accepts(schema("a string!"), schema("a string"))
    assert not spark_accepts(schema("a int"), schema("a long"))
    assert not spark_accepts(schema("a long"), schema("a long, b long"))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("a string!", "a string", "a may be null now, and could not be before"),
        ("a string, n long!", "a string, max long", "max long takes the place of n long"),
        ("a int", "a long, n long", "n long is new; a is long, and was int"),
        ("a int, b long", "b long", "a int is gone"),
        ("a int, b int", "b int, a int", "the order is b, a; it was a, b"),
    ],
)
def test_a_difference_of_schemas_is_told_as_such(before, after, words):
    assert difference(schema(before), schema(after)) == words


def test_a_difference_inside_a_struct_names_the_way_there():
    def inside(*fields):
        whole = {"name": "s", "type": {"type": "struct", "fields": list(fields)}, "nullable": True}
        return json.dumps({"type": "struct", "fields": [whole]})

    total, last = json.loads(schema("total long, last long"))["fields"]
    assert difference(inside(total), inside(total, last)) == "s.last long is new"
    strict = {**total, "nullable": False}
    assert difference(inside(strict), inside(total)).startswith("s.total may be null now")


def test_reasons_never_show_two_lists_that_read_alike():
    for kind, key in (("stateStoreSave", "k string"), ("dedupe", "k string")):
        held = operator(kind, key=f"{key}!")
        new = operator(kind, key=key)
        (one,) = [
            one
            for one in judged(meeting(held=(held,), new={"operators": (new,)})).reasons
            if one.where == "state/0"
        ]
        assert "k may be null now, and could not be before" in one.what


def test_a_count_that_becomes_a_maximum_is_told_as_such():
    held = operator(value="count long!")
    new = operator(value="max long")
    comparison = meeting(
        held=(held,),
        old={"tree": plan(("count(1)",), ("user",))},
        new={"operators": (new,), "tree": plan(("max(v)",), ("user",))},
    )
    (one,) = [one for one in judged(comparison).reasons if one.rule == "aggregates-changed"]
    assert "max(v)" in one.what
    assert "count(1)" in one.what
    assert "may be null" not in one.what


def test_several_changes_are_one_command():
    comparison = meeting(
        new={
            "operators": (operator(value="sum double, count long!, max double"),),
            "conf": {
                "spark.sql.shuffle.partitions": "8",
                "spark.sql.streaming.stateStore.providerClass": "a.b.RocksDBStateStoreProvider",
            },
        },
        application=("my app.py", "--old", "old.py"),
    )
    judgement = judged(comparison)
    command = (
        "floodmark migrate /ck /ck-new --app 'my app.py' --partitions 8 --provider rocksdb "
        "--old old.py"
    )
    assert (judgement.verdict, judgement.command) == (Verdict.NEEDS_MIGRATION, command)
    told = {one.rule: one.do for one in judgement.reasons if one.do.startswith(command)}
    wanted = {"aggregates-changed", "shuffle-partitions-pinned", "state-provider-pinned"}
    assert told.keys() == wanted


def test_other_partitions_alone_need_nothing_and_give_no_command():
    judgement = judged(meeting(new={"conf": {"spark.sql.shuffle.partitions": "8"}}))
    assert (judgement.verdict, judgement.command) == (Verdict.COMPATIBLE, None)


def test_where_spark_checks_nothing_a_change_is_silent():
    other = {"operators": (operator(value="sum long, count long"),)}
    loud = meeting(new=other)
    quiet = meeting(new={**other, "conf": {SCHEMA_CHECK: "false"}})
    (first,) = [one for one in judged(loud).reasons if one.rule == "aggregates-changed"]
    (second,) = [one for one in judged(quiet).reasons if one.rule == "aggregates-changed"]
    assert (first.silent, second.silent) == (False, True)
    assert first.is_refused
    assert not second.is_refused


@pytest.mark.parametrize(
    ("place", "written", "moved"),
    [
        ("data/ck", "file:/home/me/data/ck", False),  # the places say where data/ck is
        ("s3://bucket/ck", "s3a://bucket/ck", False),
        ("webhdfs://node:9870/ck", "hdfs://node:8020/ck", False),
        ("s3://bucket/ck2", "s3a://bucket/ck", True),
    ],
)
def test_a_place_is_known_however_it_is_written(place, written, moved):
    metadata = example("compatibility", "moved_state_schema").METADATA.replace(
        "file:/other/ck", written
    )
    comparison = meeting(metadata=metadata, places=("/home/me/data/ck",))
    found = replace(comparison, checkpoint=replace(comparison.checkpoint, path=place))
    assert found.is_moved(0) is moved


def test_kafka_topics_are_told_without_a_note():
    def found(asked, **options):
        comparison = meeting(
            ('{"orders":{"0":1},"bills":{"0":4}}',),
            {"none": True},
            {"sources": (source("kafka", asked, **options),)},
        )
        reasons = judged(comparison).reasons
        return [(one.verdict, one.silent) for one in reasons if one.rule == "source-place-changed"]

    assert found("orders, bills") == []
    assert found("orders,bills,refunds") == [(Verdict.COMPATIBLE, False)]
    assert found("orders") == [(Verdict.NEEDS_MIGRATION, False)]
    assert found("orders", failondataloss="false") == [(Verdict.NEEDS_MIGRATION, True)]


def test_named_sources_come_and_go():
    named = replace(source(), name="orders"), replace(source(place="/b"), name="bills")
    pins = {"spark.sql.shuffle.partitions": "2"}
    comparison = meeting(
        ('orders:{"logOffset":1}', 'gone:{"logOffset":1}'),
        {"sources": named},
        {"sources": named},
        pins=pins,
        version=2,
    )
    reasons = [one for one in judged(comparison).reasons if one.rule == "source-count-changed"]
    assert [(one.verdict, one.silent) for one in reasons] == [
        (Verdict.UNKNOWN, True),
        (Verdict.COMPATIBLE, False),
    ]


def test_names_on_a_checkpoint_without_them_and_none_on_one_with_them():
    named = replace(source(), name="orders"), replace(source(place="/b"), name="bills")
    unnamed = tuple(replace(one, name=None) for one in named)
    places = ('{"logOffset":1}', '{"logOffset":2}')
    reordered = meeting(places, {"sources": unnamed}, {"sources": named[::-1]})
    found = judged(reordered)
    said_of_sources = [one for one in found.reasons if one.rule.startswith("source")]
    assert [one.rule for one in said_of_sources] == ["source-names-unknown"]
    assert found.verdict is Verdict.NEEDS_MIGRATION
    assert found.command is None  # migrate is not the way
    assert "floodmark convert /ck /ck-new --name 0=orders --name 1=bills" in said_of_sources[0].do
    lines = tuple(f"{name}:{at}" for name, at in zip(("orders", "bills"), places, strict=True))
    lost = meeting(lines, {"sources": named}, {"sources": unnamed}, version=2)
    assert Verdict.NEEDS_NEW_CHECKPOINT in {
        one.verdict for one in judged(lost).reasons if one.rule == "source-names-unknown"
    }
    # Names may be numbers: the settings tell that they are names.
    pins = {**CONF, "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true"}
    numbers = tuple(replace(one, name=str(1 - at)) for at, one in enumerate(named))
    swapped = ('1:{"logOffset":1}', '0:{"logOffset":2}')
    same = meeting(swapped, {"sources": numbers}, {"sources": numbers}, pins=pins, version=2)
    assert judged(same).verdict is Verdict.SAME


def test_state_of_spark_3_has_no_names_and_is_compared_by_its_schemas():
    held = (operator(None),)
    assert said(meeting(held=held, new={"operators": (operator(),)})) == set()
    assert "aggregates-changed" in said(
        meeting(held=held, new={"operators": (operator(value="sum double"),)})
    )
    assert "stateful-operators-changed" in said(meeting(held=held, new={"operators": (join(),)}))


def test_the_rehearsal_has_the_last_word():
    changed = {"operators": (operator(value="sum long, count long"),)}
    refused = meeting(new=changed, rehearsal=Rehearsal(True, 8, True))
    assert judged(refused).verdict is Verdict.SAME
    assert judged(refused).decided_by == "rehearsal"
    silent = meeting(sink_batch=40, rehearsal=Rehearsal(True, 8, True))
    assert judged(silent).verdict is Verdict.NEEDS_NEW_CHECKPOINT  # Spark does not see it
    failed = meeting(
        rehearsal=Rehearsal(False, 8, True, "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "…")
    )
    assert judged(failed).verdict is Verdict.NEEDS_MIGRATION


def test_empty_sources_do_not_answer_for_the_real_ones():
    other = {"sources": (source("kafka", "orders"),)}
    assert judged(meeting(new=other, rehearsal=Rehearsal(True, 8, False))).verdict is (
        Verdict.NEEDS_MIGRATION
    )
    assert "source-kind-changed" not in said(meeting(new=other, rehearsal=Rehearsal(True, 8, True)))


def test_a_checkpoint_without_a_batch_binds_nobody():
    comparison = meeting(new={"operators": ()})
    empty = replace(comparison.checkpoint, offset_ids=(), commit_ids=())
    assert judged(replace(comparison, checkpoint=empty)).verdict is Verdict.SAME


@pytest.mark.parametrize(
    "note", [{}, {"tree": None, "sources": 7, "conf": []}, {"sources": [3], "tree": [1, {}]}]
)
def test_a_damaged_note_is_read_as_far_as_it_goes(note):
    found = last_start(note)
    assert found is not None
    assert found.sources == ()


@pytest.mark.parametrize(
    ("seen", "reordered"),
    [
        ({0: "file:/data/b/1.json", 1: "file:///data/a/2.json"}, True),
        ({0: "file:/data/a/1.json", 1: "file:///data/b/2.json"}, False),
        ({0: "file:/data/b/1.json"}, True),
        ({0: "file:/data/c/1.json", 1: "file:/data/a/1.json"}, True),
        ({}, False),
    ],
    ids=["swapped", "same", "half known", "elsewhere", "unknown"],
)
def test_lists_of_files_tell_that_folders_changed_places(
    seen: dict[int, str], reordered: bool
) -> None:
    comparison = meeting(
        ('{"logOffset":4}', '{"logOffset":4}'),
        {"none": True},
        {"sources": (source("json", "/data/a"), source("csv", "data/b/"))},
        seen=seen,
    )
    found = [one.rule for one in judge_restart(comparison).reasons]
    assert ("sources-reordered" in found) is reordered


def _windowed(seconds: int) -> str:
    """As Spark writes `window(at, …)` out."""
    start = f"subtract(at, remainder(at, {seconds}000000))"
    return f"create_named_struct('start', {start}, 'end', add({start}, {seconds}000000))"


@pytest.mark.parametrize(("seconds", "other"), [(300, False), (600, True)])
def test_the_state_tells_how_long_its_windows_last(seconds: int, other: bool) -> None:
    new = {"tree": plan(keys=(_windowed(seconds),))}
    comparison = meeting(old={"none": True}, new=new, windows={0: 300_000_000})
    found = judge_restart(comparison)
    assert ("keys-mean-another" in {one.rule for one in found.reasons}) is other
    noted = judge_restart(meeting(old=new, new=new, windows={0: 300_000_000}))
    assert "keys-mean-another" not in {one.rule for one in noted.reasons}


def test_windows_are_found_in_the_state() -> None:
    files = open_files(str(GOLDEN / "4.2" / "windowed" / "checkpoint"))
    checkpoint = load(files)
    found = seen_windows(files, checkpoint, held_operators(files, checkpoint))
    assert found == {0: 300_000_000}


def test_a_filter_below_a_state_is_no_silent_yes():
    comparison = meeting(new={"tree": plan(where=("less_than(1, qty)",))})
    found = judged(comparison)
    assert found.verdict is Verdict.UNKNOWN
    assert [one.rule for one in found.reasons if one.silent] == ["filter-changed"]
    accepted = judge_restart(comparison, frozenset({"filter-changed"}))
    assert accepted.verdict is Verdict.COMPATIBLE


def test_a_filter_on_keys_is_moved_below_the_state():
    found = judged(meeting(new={"tree": plan(having=("equal_to(@key 0, 'a')",))}))
    assert found.verdict is Verdict.UNKNOWN
    assert [one.rule for one in found.reasons if one.silent] == ["filter-changed"]


def test_a_filter_says_nothing_of_a_state_that_begins_now():
    old = PlanTree(Input(SOURCE, expressions("less_than(0, amount)")), ())
    (found, *_) = differences(old, plan())
    assert (found.kind, found.feeds) == (DifferenceKind.FILTER, None)


@pytest.mark.parametrize(
    ("keys", "verdict"), [(("user",), Verdict.COMPATIBLE), (("user", "at"), Verdict.UNKNOWN)]
)
def test_a_watermark_counts_where_a_state_depends_on_event_time(keys, verdict):
    old, new = plan(keys=keys), plan(keys=keys, watermark=("at", 600_000))
    found = judged(meeting(old={"tree": old}, new={"tree": new}))
    (told,) = [one for one in found.reasons if one.rule == "watermark-added-or-removed"]
    assert told.verdict is verdict


def test_what_cannot_be_compared_is_unknown_in_changed_code():
    hidden = replace(plan(), untold=("what the function f does",))
    same = meeting(old={"tree": hidden}, new={"tree": hidden})
    assert same.last is not None
    unchanged = replace(same, fingerprint="f", last=replace(same.last, fingerprint="f"))
    assert judged(unchanged).verdict is Verdict.SAME
    found = judged(replace(unchanged, fingerprint="g"))
    assert found.verdict is Verdict.UNKNOWN
    assert "what the function f does" in " ".join(one.what for one in found.reasons)


def test_what_nobody_has_compared_is_said():
    found = judged(meeting(old={"none": True}))
    assert found.verdict is Verdict.UNKNOWN
    assert "the sink" in found.not_compared
    assert judged(meeting()).not_compared == ()


def test_plans_of_two_sparks_are_not_called_the_same():
    old, new = plan(), plan(("sum(price)", "count(1)"))
    found = judged(meeting(old={"tree": old, "spark_version": "4.0.1"}, new={"tree": new}))
    assert "cannot be compared exactly" in " ".join(one.what for one in found.reasons)
    assert not found.verdict.is_yes


@pytest.mark.parametrize("key", ["latestfirst", "maxfileage", "pathglobfilter"])
def test_an_option_that_chooses_other_files_is_no_yes(key):
    """With latestFirst gone, Spark drops the backlog that is older than maxFileAge."""
    old, new = source(**{key: "true"}), source()
    found = judged(meeting(old={"sources": (old,)}, new={"sources": (new,)}))
    assert found.verdict is Verdict.UNKNOWN
    assert [one.rule for one in found.reasons if one.silent] == ["source-options-changed"]


def test_an_option_of_how_records_are_read_counts_where_there_is_state():
    changed = {"sources": (source(dateformat="dd/MM/yyyy"),)}
    assert judged(meeting(new=changed)).verdict is Verdict.UNKNOWN
    stateless = meeting(
        new=changed | {"operators": (), "tree": of_step("Project", stateful=False)},
        old={"tree": of_step("Project", stateful=False)},
        held=(),
    )
    assert judged(stateless).verdict.is_yes


@pytest.mark.parametrize(
    ("columns", "yes"),
    [("amount DOUBLE,user STRING", False), ("user STRING, amount DOUBLE,more INT", True)],
)
def test_columns_of_a_csv_are_known_by_their_place(columns, yes):
    old = source("csv")
    new = replace(old, schema_ddl=columns)
    found = judged(meeting(old={"sources": (old,)}, new={"sources": (new,)}))
    assert found.verdict.is_yes is yes


@pytest.mark.parametrize(("file", "fits"), [("/in/a.json", True), ("/other/a.json", False)])
def test_the_files_that_were_read_tell_the_folder_without_a_note(file, fits):
    found = judged(meeting(old={"none": True}, seen={0: file}))
    assert ("source-place-changed" in {one.rule for one in found.reasons}) is not fits
