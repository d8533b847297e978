"""Changes of plain scripts that `check` once called the same, or called a change for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broken.meeting import join, meeting, operator, source
from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.outline import ANSI
from floodmark.rules.compatibility import source_limits_changed
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.not_carried import unaccounted
from floodmark.rules.restarts.reason import Judgement, Verdict
from floodmark.rules.restarts.source_lists import seen_by_place
from floodmark.rules.restarts.verdict import judge_restart
from plan_trees import of_step, plan

TWO = ('{"logOffset":4}', '{"logOffset":4}')


def _judged(comparison: Comparison) -> Judgement:
    return judge_restart(comparison)


def _told(comparison: Comparison, rule: str) -> list[Verdict]:
    return [one.verdict for one in _judged(comparison).reasons if one.rule == rule]


def _with_lists(comparison: Comparison, *folders: str) -> Comparison:
    files = tuple(FileInfo(f"sources/{one}/0", 9) for one in folders)
    return replace(comparison, checkpoint=replace(comparison.checkpoint, files=files))


def _read_by(
    lists: tuple[str, ...], folders: tuple[str, ...], offsets: tuple[str, ...] = TWO
) -> list[Verdict]:
    """The verdicts on code whose sources have these folders, over a checkpoint with these lists."""
    sources = tuple(source() for _ in offsets)
    meets = meeting(offsets, {"sources": sources}, {"sources": sources}, folders=folders)
    return _told(_with_lists(meets, *lists), "source-count-changed")


def test_a_dataframe_used_twice_is_one_source_and_two_are_two() -> None:
    assert _read_by(("0",), ("0", "0")) == []
    assert _read_by(("0", "1"), ("0", "1")) == []
    assert _read_by(("0",), ("0", "1")) == [Verdict.NEEDS_NEW_CHECKPOINT]
    # Both lists hold the same files, and the one that stays stands where the other does.
    assert _read_by(("0", "1"), ("0", "0")) == []
    apart = ('{"logOffset":4}', '{"logOffset":3}')
    assert _read_by(("0", "1"), ("0", "0"), apart) == [Verdict.NEEDS_NEW_CHECKPOINT]
    # The third source's list would be that of the second.
    three = (*TWO, '{"logOffset":7}')
    assert _read_by(("0", "1", "2"), ("0", "0", "1"), three) == [Verdict.NEEDS_NEW_CHECKPOINT]
    assert _read_by((), ("0", "1")) == []  # of an outline


def test_a_file_that_was_read_is_looked_up_in_the_list_of_its_dataframe() -> None:
    def seen(
        lists: tuple[str, ...], folders: tuple[str, ...], offsets: tuple[str, ...] = TWO
    ) -> dict[int, str]:
        found = _with_lists(meeting(offsets, folders=folders), *lists).checkpoint
        by_folder = {int(one): f"file of {one}" for one in lists}
        return seen_by_place(found, by_folder, folders)

    assert seen(("0", "1"), ("0", "1")) == {0: "file of 0", 1: "file of 1"}
    assert seen(("0",), ("0", "0")) == {0: "file of 0", 1: "file of 0"}
    assert seen(("0",), ("0", "1")) == {0: "file of 0", 1: "file of 0"}
    three = (*TWO, '{"logOffset":4}')
    assert seen(("0", "1"), ("0", "0", "1"), three)[2] == "file of 1"


@pytest.mark.parametrize(
    ("before", "now", "file", "verdicts"),
    [
        ("/in", "/in/", None, []),
        ("/in", "file:///in", "file:///in/1.json", []),
        ("/in", "file:/in", "hdfs://a/in/1.json", [Verdict.UNKNOWN]),
        ("s3://b/in", "s3a://b/in", "s3://b/in/1.json", [Verdict.UNKNOWN]),
        ("data/in", "/data/in", "file:///data/in/1.json", [Verdict.COMPATIBLE]),
        ("../in", "/data/in", "file:///data/in/1.json", [Verdict.COMPATIBLE]),
        ("/data/in", "data/in", "file:///data/in/1.json", [Verdict.UNKNOWN]),
        ("in", "/data/in", "file:///other/in/1.json", [Verdict.NEEDS_NEW_CHECKPOINT]),
    ],
)
def test_a_folder_may_be_written_in_another_way(
    before: str, now: str, file: str | None, verdicts: list[Verdict]
) -> None:
    old, new = ({"sources": (source(place=place),)} for place in (before, now))
    seen = {} if file is None else {0: file}
    assert _told(meeting(old=old, new=new, seen=seen), "source-place-changed") == verdicts


def test_columns_of_a_state_that_have_new_names_alone_are_the_same() -> None:
    dedup, renamed = (
        (operator("dedupe", key=f"{name} long", value="__dummy__ string"),)
        for name in ("id", "order")
    )
    sides, others = (join(),), (join(value="person string, qty long"),)
    for held, drawn in ((dedup, renamed), (sides, others)):
        new = {"operators": drawn}
        assert _judged(meeting(held=held, new=new)).verdict is Verdict.SAME
        without_plans = meeting(held=held, new=new, old={"tree": None})
        assert _judged(without_plans).verdict is Verdict.NEEDS_MIGRATION
        otherwise = {"operators": drawn, "tree": plan(where=("greater_than(amount, 1)",))}
        assert _judged(meeting(held=held, new=otherwise)).verdict is not Verdict.SAME


def test_ansi_mode_that_old_code_leaves_to_spark_4_is_on() -> None:
    drawn = {"is_drawn": True, "conf": {}}
    assert _told(meeting(old=drawn, new={"conf": {ANSI: "false"}}), "evaluation-settings-changed")
    for conf in ({}, {ANSI: "true"}):
        same = meeting(old=drawn, new={"conf": conf})
        assert _told(same, "evaluation-settings-changed") == []


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.csv.parser.columnPruning.enabled",
        "spark.sql.parquet.datetimeRebaseModeInRead",
        "spark.sql.json.enableExactStringParsing",
    ],
)
def test_settings_of_readers_count(key: str) -> None:
    changed = meeting(new={"conf": {key: "false"}})
    assert _told(changed, "evaluation-settings-changed") == [Verdict.UNKNOWN]


@pytest.mark.parametrize(
    ("sink", "verdict"),
    [
        ("json", Verdict.UNKNOWN),
        ("delta", Verdict.UNKNOWN),
        ("my.Sink", Verdict.COMPATIBLE),
    ],
)
def test_other_partition_columns_of_the_output_are_told(sink: str, verdict: Verdict) -> None:
    def found(before: dict[str, str], now: dict[str, str]) -> list[Verdict]:
        old, new = ({"sink": sink, "sink_options": one} for one in (before, now))
        return _told(meeting(old=old, new=new), "sink-target-changed")

    assert found({"partitionby": "k"}, {"partitionby": "g"}) == [verdict]
    assert found({"partitionby": ""}, {"partitionby": "g"}) == [verdict]
    assert found({}, {"partitionby": "g"}) == []  # a note of an earlier release


def test_another_table_of_the_output_is_told() -> None:
    old, new = ({"sink_options": {"path": "/out", "table": name}} for name in ("one", "two"))
    assert _told(meeting(old=old, new=new), "sink-target-changed") == [Verdict.COMPATIBLE]


def test_of_old_code_the_function_of_the_sink_is_named_as_not_compared() -> None:
    def found(sink: str, fingerprint: str) -> list[Verdict]:
        old, new = {"is_drawn": True, "sink": sink}, {"sink": sink}
        return _told(meeting(old=old, new=new, fingerprint=fingerprint), "code-changed")

    assert found("foreachBatch", "b") == [Verdict.COMPATIBLE]
    assert found("foreachBatch", "a") == []
    assert found("parquet", "b") == []  # the plan and the options are all there is


def test_options_that_change_no_record_stop_nothing() -> None:
    cached = source(discardcachedinputratio="0.1", maxcachedfiles="10")
    told = _judged(meeting(new={"sources": (cached,)}))
    assert told.verdict is Verdict.COMPATIBLE
    old, new = ({"sources": (source("csv", **more),)} for more in ({}, {"maxcharspercolumn": "3"}))
    short = meeting(old=old, new=new)
    assert _told(short, "source-options-changed") == [Verdict.UNKNOWN]


def test_a_rate_that_changes_changes_the_numbers() -> None:
    old, new = ({"sources": (source("rate", rowspersecond=n),)} for n in ("5", "50"))
    (found,) = source_limits_changed.check(meeting(("4",), old, new))
    assert "come again" in (found.why or "")


def _sinks(before: tuple[str, str], now: tuple[str, str], **more: object) -> dict[str, Verdict]:
    told = [{"sink": kind, "sink_options": {"path": path}} for kind, path in (before, now)]
    found = _judged(meeting(old=told[0], new=told[1], **more))
    return {one.rule: one.verdict for one in found.reasons if one.rule.startswith("sink-")}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("/out", "/out/"),
        ("/out", "//out"),
        ("file:/out", "file:///out"),
        ("out", "out/"),
        ("s3a://b/out", "s3://b/out/"),
    ],
)
def test_a_folder_of_output_may_be_written_in_another_way(before: str, now: str) -> None:
    assert _sinks(("json", before), ("json", now)) == {}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("out", "/data/out"),
        ("/data/out", "./out"),
        ("/out", "file:/out"),
        ("/out", "hdfs:///out"),
    ],
)
def test_the_log_in_a_folder_tells_whether_it_is_the_same(before: str, now: str) -> None:
    """A relative path, and one without a scheme, can be anywhere."""
    paths = ("json", before), ("json", now)
    anew = {"sink-directory-changed": Verdict.NEEDS_NEW_CHECKPOINT}
    assert _sinks(*paths) == anew
    assert _sinks(*paths, sink_batch=6) == anew
    assert _sinks(*paths, sink_batch=7) == {"sink-directory-changed": Verdict.COMPATIBLE}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("/out", "/out2"),
        ("out", "/data/other"),
        ("s3://a/out", "s3://b/out"),
        ("hdfs://one/out", "hdfs://two/out"),
        ("file:/out", "hdfs:/out"),
        ("s3a:/out", "s3a://out"),
    ],
)
def test_another_folder_with_as_many_batches_is_another_folder(before: str, now: str) -> None:
    found = _sinks(("json", before), ("json", now), sink_batch=7)
    assert found == {"sink-directory-changed": Verdict.NEEDS_NEW_CHECKPOINT}


def test_files_of_two_kinds_in_one_folder_are_no_table() -> None:
    for path in ("/out", "/out/"):
        found = _sinks(("json", "/out"), ("parquet", path))
        assert found == {"sink-changed": Verdict.UNKNOWN}
    # In a folder of its own, the new kind can be read; that folder is judged by another rule.
    found = _sinks(("json", "/out"), ("parquet", "/out2"))
    assert found["sink-changed"] is Verdict.COMPATIBLE


@pytest.mark.parametrize(
    ("kind", "before", "now", "verdict"),
    [
        ("json", {}, {"multiline": "False"}, Verdict.COMPATIBLE),
        ("json", {"mode": "PERMISSIVE"}, {}, Verdict.COMPATIBLE),
        ("json", {"mode": "permissive"}, {"mode": "PERMISSIVE"}, Verdict.COMPATIBLE),
        ("csv", {}, {"header": "false", "sep": ","}, Verdict.COMPATIBLE),
        ("csv", {"inferschema": "true"}, {}, Verdict.COMPATIBLE),
        ("text", {}, {"latestfirst": "false"}, Verdict.COMPATIBLE),
        ("json", {}, {"multiline": "true"}, Verdict.UNKNOWN),
        ("json", {}, {"mode": "DROPMALFORMED"}, Verdict.UNKNOWN),
        ("csv", {"header": "true"}, {}, Verdict.UNKNOWN),
        ("csv", {"sep": ","}, {"sep": ";"}, Verdict.UNKNOWN),
        ("csv", {}, {"nullvalue": ""}, Verdict.UNKNOWN),
        ("text", {"latestfirst": "true"}, {}, Verdict.UNKNOWN),
        ("csv", {"delimiter": "|"}, {"sep": "|"}, Verdict.COMPATIBLE),
        ("csv", {"delimiter": "|"}, {"delimiter": "|", "sep": ","}, Verdict.UNKNOWN),
        ("csv", {"sep": "T"}, {"sep": "t"}, Verdict.UNKNOWN),
        ("csv", {"quote": "Q"}, {"quote": "q"}, Verdict.UNKNOWN),
        ("csv", {}, {"quote": '"', "escape": "\\"}, Verdict.COMPATIBLE),
        # Of XML, a record may go over several lines unless that is switched off.
        ("xml", {}, {"multiline": "false"}, Verdict.UNKNOWN),
        ("xml", {}, {"inferschema": "false"}, Verdict.UNKNOWN),
    ],
)
def test_an_option_that_is_set_to_its_default_reads_the_same_records(
    kind: str, before: dict[str, str], now: dict[str, str], verdict: Verdict
) -> None:
    old, new = ({"sources": (source(kind, **one),)} for one in (before, now))
    found = _told(meeting(old=old, new=new), "source-options-changed")
    assert found
    assert set(found) == {verdict}


def _carried(*columns: str, renames: dict[str, str] | None = None, given: str = "") -> list[str]:
    """What `migrate` refuses where the left side of a join had k and v, and has these columns."""
    sides = {"condition": ("equal_to(k, k)",), "right_columns": ("k",)}
    before = of_step("Join", left_columns=("k", "v"), **sides)
    now = of_step("Join", left_columns=columns, **sides)
    joins = (join(),)
    met = meeting(old={"tree": before}, new={"tree": now, "operators": joins}, held=joins)
    return [one.what for one in unaccounted(met, renames or {}, False, (given,))]


def test_a_column_of_a_join_is_not_renamed_only_because_it_is_the_one_left() -> None:
    (refused,) = _carried("k", "w")
    assert "w of the left side is w, and v, which was v, is gone" in refused
    assert _carried("k", "w", renames={"w": "v"}) == []  # --rename v=w
    assert _carried("k", "w", given="w") == []  # --default w=null
    # Nothing is taken for another one: new columns are null, and one that goes is left out.
    assert _carried("k", "v", "w") == []
    assert _carried("k") == []
    assert _carried("k", "w", "x") == []
