"""Every rule before a start speaks of its example, and none of a query that is sound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broken.starting import KAFKA, SOUND, outside, situation
from floodmark import api
from floodmark.checkpoint.live_answers import Bounds, SinkLog, TableLog
from floodmark.connectors.source import SourceOffset
from floodmark.engine.start.before_start import allowed_rules, refuse
from floodmark.errors import NotReachable, Refused, WrongUse
from floodmark.rules.pipeline.misspelt_checkpoint_option import is_misspelt
from floodmark.rules.registry import all_rules, find_rule, rules_of, start_checks
from floodmark.rules.start_inputs.situation import Situation, StartingSource
from rules.examples import BROKEN, example

RULES = [known.rule for known in rules_of("start")]
MISSPELT = [
    *("checkPoint", "checkpoint", "checkpoints", "checkpointDir", "checkpointDirectory"),
    *("checkpointFolder", "checkpointLoc", "checkpointPath", "checkpointUrl"),
    *("locationCheckpoint", "checkpoint_location", "checkpoint-location", "checkpoint.location"),
    *("checkpointLocaton", "checkpointLocatoin", "chekpointLocation", "checkpointLocations"),
    "checkPointLocationn",
]


def said(situation: Situation) -> set[str]:
    return {found.rule for check in start_checks() for found in check(situation)}


def test_a_sound_start_is_let_go() -> None:
    assert said(SOUND) == set()
    refuse([], frozenset())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_fires_on_its_example_and_nothing_else_does(rule) -> None:
    assert said(example("start", rule.name.replace("-", "_")).SITUATION) == {rule.name}


def test_every_example_belongs_to_a_rule() -> None:
    names = {path.stem for path in (BROKEN / "start").glob("*.py")}
    assert names == {rule.name.replace("-", "_") for rule in RULES}


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("memory-sink-resumed", situation(sink="memory", output_mode="Append")),
        ("misspelt-checkpoint-option", situation(sink_options={"checkpoint": "/elsewhere"})),
        ("checkpoint-on-local-disk", situation(master="yarn")),
        ("checkpoint-on-local-disk", situation(master="spark://host:7077")),
        ("non-replayable-source", situation(sources=(StartingSource("0", "socket"),))),
        ("delta-version-gone", outside(tables={"1": TableLog("/lake/orders", "a1b2", 8, 9)})),
        ("delta-table-replaced", outside(tables={"1": TableLog("/lake/orders", "a1b2", 0, 2)})),
        ("input-file-gone", outside(inputs={"2": ("/in/a.csv",)})),
        ("sink-ahead-of-commits", outside(sink=SinkLog("/out", "delta", 40))),
        ("kafka-topic-missing", outside(kafka={"0": {"orders": {0: Bounds(0, 20)}}})),
    ],
)
def test_rules_of_lint_and_doctor_judge_a_start_too(name: str, changed: Situation) -> None:
    assert said(changed) == {name}


def test_a_disk_is_no_trouble_for_one_machine_nor_shared_storage_for_many() -> None:
    assert said(situation(master="yarn", location="hdfs://h/ck", writer_checkpoint=None)) == set()


def test_a_topic_that_a_new_stream_subscribes_to_has_to_be_there() -> None:
    new = replace(KAFKA, position=SourceOffset("0", "kafka", None, None))
    assert said(replace(outside(kafka={"0": {}}), sources=(new,))) == {"kafka-topic-missing"}


@pytest.mark.parametrize("option", MISSPELT)
def test_lint_and_run_call_the_same_options_misspelt(option: str, tmp_path) -> None:
    code = tmp_path / "app.py"
    code.write_text(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "rows = spark.readStream.schema('id STRING').json('s3://lake/orders')\n"
        f"rows.writeStream.format('delta').option({option!r}, 's3://lake/ck').start('s3://lake/x')\n"
    )
    assert "misspelt-checkpoint-option" in {found.rule for found in api.lint([str(code)])}
    assert said(situation(sink_options={option.lower(): "s3://lake/ck"})) == {
        "misspelt-checkpoint-option"
    }


@pytest.mark.parametrize(
    "option", ["checkpointLocation", "path", "mergeSchema", "checkpointInterval", "location"]
)
def test_other_options_are_not_taken_for_it(option: str) -> None:
    assert not is_misspelt(option)


def test_allow_takes_every_rule_that_can_refuse_and_its_former_name() -> None:
    for known in all_rules():
        if known.check_start or known.check_starts or known.family == "compatibility":
            assert allowed_rules([known.rule.name]) == {known.rule.name}
    assert allowed_rules(["unreplayable-source"]) == {"non-replayable-source"}
    assert find_rule("local-checkpoint-on-cluster").rule.code == "FM203"
    with pytest.raises(WrongUse, match="unknown name"):
        allowed_rules(["offset-gap"])  # a rule, but none that a start asks


def test_only_what_time_may_mend_is_worth_another_try() -> None:
    silent = outside(kafka={}, silent={"0": "no answer"})
    both = replace(silent, writer_checkpoint="file:/other")
    with pytest.raises(NotReachable, match="not reachable"):
        refuse([one for check in start_checks() for one in check(silent)], frozenset())
    with pytest.raises(Refused) as lasting:
        refuse([one for check in start_checks() for one in check(both)], frozenset())
    assert not isinstance(lasting.value, NotReachable)
    assert "--allow second-checkpoint" in lasting.value.do
    assert "--allow kafka-unreachable" in lasting.value.do
    assert "FLOODMARK_ALLOW=second-checkpoint,kafka-unreachable" in lasting.value.do


def test_a_new_checkpoint_on_an_old_output_is_refused() -> None:
    """Its first batches have numbers that the folder has."""
    old = replace(outside(sink=SinkLog("/out", "files", 3)), checkpoint=None)
    assert "sink-ahead-of-commits" in said(old)
    new = replace(outside(sink=SinkLog("/out", "files", None)), checkpoint=None)
    assert "sink-ahead-of-commits" not in said(new)
