"""What users of checkpoints suffer from, each made on a golden checkpoint and mended, or told.

One test an entry of the list of troubles that this project keeps beside the checkout; where that
list is there, an entry that no test is about fails.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import samples
from broken.damage import drop
from broken.meeting import PARTITIONS, meeting, operator
from carried import GO
from floodmark import api
from floodmark.checkpoint.live_answers import LiveAnswers, TableLog
from floodmark.rules.restarts.reason import Verdict
from floodmark.rules.restarts.verdict import judge_restart
from rules.examples import diagnose, example, golden, home

LIST = Path(__file__).parents[2] / "shared" / "troubles.md"
TESTED: dict[int, list[str]] = {}
NOT_HERE = {
    7: "lag is asked of a broker, and the verb that asks (`lag`) is not built yet; what can be "
    "told without one is tested: where the stream stands, partition by partition",
}


def trouble(number: int):
    """Marks what a test is about."""

    def marked(function):
        TESTED.setdefault(number, []).append(function.__name__)
        return function

    return marked


def broken(name: str, folder: Path) -> Path:
    made = example("checkpoint", name.replace("-", "_"))
    tree = dict(golden(made.FROM))
    made.damage(tree)
    return samples.write(folder / "cp", tree)


def rules(place: Path) -> set[str]:
    return {item.rule for item in api.doctor(str(place), 1.0)}


def linted(folder: Path, code: str) -> set[str]:
    (folder / "job.py").write_text(code)
    return {item.rule for item in api.lint([str(folder / "job.py")])}


@trouble(1)
def test_the_last_offset_is_read_and_a_new_stream_begins_there(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/kafka"))
    committed = api.inspect(str(place)).committed_batch
    text = (place / "offsets" / str(committed)).read_text().split("\n")[2]
    found = api.offsets(str(place))
    assert found.batch == committed
    assert [json.loads(source.option.value) for source in found.sources if source.option] == [
        json.loads(text)
    ]
    api.upgrade(str(place), str(tmp_path / "new"), carrying=GO)
    assert api.offsets(str(tmp_path / "new")).sources == found.sources


@trouble(2)
@pytest.mark.parametrize("name", ["offset-gap", "commits-behind", "commits-missing"])
def test_a_gap_in_a_log_is_mended(name: str, tmp_path: Path) -> None:
    place = broken(name, tmp_path)
    assert name in rules(place)
    api.repair(str(place), accept=["repeats"], carrying=GO)
    assert rules(place) == set()


@trouble(3)
@pytest.mark.parametrize(
    "line", ["shutil.rmtree(ck)", "os.system(f'rm -rf {ck}')", "dbutils.fs.rm(ck, True)"]
)
def test_code_that_deletes_the_checkpoint_is_found(line: str, tmp_path: Path) -> None:
    code = (
        "import os, shutil\nck = 's3://lake/ck/a'\n"
        "spark.readStream.format('delta').load('s3://lake/in').writeStream.format('delta')"
        ".option('checkpointLocation', ck).start('s3://lake/out')\n"
    )
    assert "checkpoint-deleted-by-code" not in linted(tmp_path, code)
    assert "checkpoint-deleted-by-code" in linted(tmp_path, f"{code}{line}\n")


@trouble(4)
def test_a_changed_state_schema_is_no_cold_start() -> None:
    changed = meeting(new={"operators": (operator(value="sum double, count long, max long"),)})
    judgement = judge_restart(changed)
    assert judgement.verdict is Verdict.NEEDS_MIGRATION
    assert any("migrate" in reason.do for reason in judgement.reasons)


@trouble(5)
def test_a_missing_delta_costs_batches_and_not_the_state(tmp_path: Path) -> None:
    tree = golden("3.5/sales-hdfs")
    whole = samples.write(tmp_path / "whole", tree)
    drop(tree, "state/0/1/3.delta")
    place = samples.write(tmp_path / "cp", tree)
    assert rules(place) == {"state-version-missing"}
    change = api.repair(str(place), accept=["repeats"], carrying=GO)
    assert [(i["at_most"], i["batches"]) for i in change.plan.options["repeats"]] == [(1, [2])]
    assert rules(place) == set()
    rows = [sorted(map(repr, api.state(str(p), batch=1).rows())) for p in (place, whole)]
    assert rows[0] == rows[1]


@trouble(6)
def test_a_fixed_transaction_id_is_found(tmp_path: Path) -> None:
    code = (
        "def write(frame, batch_id):\n"
        "    frame.write.format('delta').option('txnAppId', 'sales')"
        ".option('txnVersion', batch_id).save('s3://lake/out')\n"
        "spark.readStream.format('delta').load('s3://lake/in').writeStream"
        ".option('checkpointLocation', 's3://lake/ck/a').foreachBatch(write).start()\n"
    )
    assert "fixed-transaction-id" in linted(tmp_path, code)


@trouble(6)
def test_a_missing_metadata_file_gets_the_old_id_back_from_the_table(tmp_path: Path) -> None:
    tree = golden("3.5/sales-hdfs")
    id_ = json.loads(tree["metadata"])["id"]
    drop(tree, "metadata")
    place = samples.write(tmp_path / "cp", tree)
    assert rules(place) == {"metadata-missing"}
    log = '{"commitInfo":{}}\n{"txn":{"appId":"%s","version":%d}}'
    table = {f"_delta_log/{n:020d}.json": (log % (id_, n)).encode() for n in range(3)}
    api.repair(str(place), sink=str(samples.write(tmp_path / "out", table)), carrying=GO)
    assert json.loads((place / "metadata").read_bytes())["id"] == id_
    assert rules(place) == set()


@trouble(7)
def test_where_a_stream_stands_is_told_without_the_broker(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/kafka"))
    (source,) = api.inspect(str(place)).sources
    assert source.kind == "kafka"
    assert all(type(at) is int for topic in source.offset.values() for at in topic.values())


@trouble(8)
def test_two_jobs_on_one_checkpoint_are_found(tmp_path: Path) -> None:
    assert "two-writers" in rules(broken("two-writers", tmp_path))
    line = (
        "spark.readStream.format('delta').load('s3://lake/in').writeStream.format('delta')"
        ".option('checkpointLocation', 's3://lake/ck/a').start('s3://lake/{}')\n"
    )
    assert "shared-checkpoint" in linted(tmp_path, line.format("a") + line.format("b"))


@trouble(9)
def test_a_source_that_has_forgotten_what_comes_next_is_found() -> None:
    kafka, delta = golden("4.2/kafka"), golden("4.2/delta")
    found = diagnose(kafka, outside=LiveAnswers(kafka={"0": {}}))
    assert "kafka-offset-out-of-range" in {item.rule for item in found}
    gone = TableLog("s3://lake/in", None, 900, 950)
    (rule,) = {item.rule for item in diagnose(delta, outside=LiveAnswers(tables={"0": gone}))}
    assert rule == "delta-version-gone"


@trouble(10)
def test_the_pinned_partition_count_is_told_and_changed(tmp_path: Path) -> None:
    changed = meeting(new={"conf": {PARTITIONS: "8"}})
    assert "shuffle-partitions-pinned" in {r.rule for r in judge_restart(changed).reasons}
    place = samples.write(tmp_path / "cp", golden("3.5/sales-hdfs"))
    before = sorted(repr((r["key"], r["value"])) for r in api.state(str(place)).rows())
    api.repartition(str(place), str(tmp_path / "new"), partitions=5, carrying=GO)
    (operator,) = api.inspect(str(tmp_path / "new")).state
    assert operator.partitions == 5
    after = sorted(repr((r["key"], r["value"])) for r in api.state(str(tmp_path / "new")).rows())
    assert after == before


@trouble(11)
@pytest.mark.parametrize("name", ["sst-missing", "sst-wrong-size"])
def test_tables_that_do_not_fit_are_found_and_left_behind(name: str, tmp_path: Path) -> None:
    place = broken(name, tmp_path)
    assert name in rules(place)
    api.repair(str(place), accept=["repeats"], carrying=GO)
    assert rules(place) == set()


@trouble(12)
def test_offsets_that_go_back_are_found(tmp_path: Path) -> None:
    assert "offsets-backwards" in rules(broken("offsets-backwards", tmp_path))


@trouble(12)
def test_an_option_that_a_restart_ignores_is_found(tmp_path: Path) -> None:
    code = (
        "spark.readStream.format('kafka').option('subscribe', 'a').option('startingOffsets', "
        "'{\"a\":{\"0\":40}}').load().writeStream.format('delta')"
        ".option('checkpointLocation', 's3://lake/ck/a').start('s3://lake/out')\n"
    )
    assert "starting-offsets-ignored" in linted(tmp_path, code)


@trouble(13)
def test_formats_that_another_spark_cannot_read_are_found(tmp_path: Path) -> None:
    assert "newer-log-version" in rules(broken("newer-log-version", tmp_path / "a"))
    assert "mixed-formats" in rules(broken("mixed-formats", tmp_path / "b"))
    old = meeting(old={"spark_version": "4.2.0"}, new={"spark_version": "3.5.9"}, version=2)
    assert "spark-downgraded" in {reason.rule for reason in judge_restart(old).reasons}


@trouble(14)
def test_a_moved_checkpoint_leads_to_itself_again(tmp_path: Path) -> None:
    name = "4.0/transform-with-state"
    place = samples.write(tmp_path / "by-hand", golden(name))
    assert rules(place) == {"moved-checkpoint"}
    api.repair(str(place), carrying=GO)
    assert rules(place) == set()
    described = [path for path in (place / "state").rglob("_metadata/v2/*") if path.is_file()]
    assert described
    assert not any(home(name) in path.read_text("latin-1") for path in described)
    api.copy(str(place), str(tmp_path / "by-us"), carrying=GO)
    assert rules(tmp_path / "by-us") == set()


@trouble(14)
def test_another_kafka_cluster_with_other_names(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/kafka"))
    topic = next(iter(api.inspect(str(place)).sources[0].offset))
    new = tmp_path / "new"
    api.upgrade(str(place), str(new), map_topic=[f"{topic}=other"], carrying=GO)
    found = api.inspect(str(new)).sources[0].offset
    assert "other" in found
    assert topic not in found


@trouble(15)
def test_a_list_of_seen_files_that_grows_is_found_and_thinned_out(tmp_path: Path) -> None:
    assert "large-file-source-log" in rules(broken("large-file-source-log", tmp_path / "a"))
    place = samples.write(tmp_path / "cp", golden("3.5/files"))
    api.compact(str(place), keep=2, carrying=GO)
    left = {path.name for path in (place / "sources" / "0").iterdir()}
    assert left == {"9.compact", "10", "11"}
    assert rules(place) == set()


@pytest.mark.skipif(not LIST.is_file(), reason="the list of troubles is not beside the checkout")
def test_every_trouble_has_its_test() -> None:
    numbers = {int(found) for found in re.findall(r"^(\d+)\. ", LIST.read_text(), re.MULTILINE)}
    assert numbers
    assert numbers - TESTED.keys() == set()
    assert TESTED.keys() - numbers == set()
    assert NOT_HERE.keys() <= numbers
