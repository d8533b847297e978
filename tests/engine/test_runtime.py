"""Running pipelines: several at once, triggers, parameters, failures and restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streams import Recorded, application, declare, put_orders, read_orders

from floodmark.engine.pipelines.application import Application
from floodmark.engine.run.options import RunOptions
from floodmark.engine.run.restart_policy import RestartPolicy
from floodmark.engine.run.runtime import run_application
from floodmark.engine.run.stream import RunReport
from floodmark.engine.run.triggers import Trigger
from floodmark.errors import Refused, StoppedMidway, WrongUse

pytestmark = pytest.mark.spark
NOW = Trigger(available_now=True)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    put_orders(tmp_path / "orders", "a", ("c1", "1.00"), ("c2", "2.00"))
    put_orders(tmp_path / "orders", "b", ("c1", "3.00"))
    return tmp_path / "orders"


def go(app: Application, view: Recorded | None = None, **options: Any) -> RunReport:
    return run_application(app, RunOptions(**{"trigger": NOW, **options}), view or Recorded())


def test_pipelines_run_beside_each_other_each_with_its_own_checkpoint(
    spark: Any, orders: Path, tmp_path: Path
) -> None:
    def raw(session: Any, start: Any) -> Any:
        return read_orders(session, orders).writeStream.format("noop")

    def totals(session: Any, start: Any) -> Any:
        rows = read_orders(session, orders).groupBy("customerId").count()
        return rows.writeStream.outputMode("complete").format("noop")

    view = Recorded()
    report = go(application(tmp_path, raw, totals), view)
    assert [(one.pipeline, one.ended, one.batches, one.rows) for one in report.pipelines] == [
        ("raw", "finished", 2, 3),
        ("totals", "finished", 2, 3),
    ]
    lines = (tmp_path / "checkpoints/totals/_floodmark/progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["batch"] for line in lines] == [0, 1]
    assert json.loads(lines[-1])["state_rows"] == 2
    assert len(view.batches) == 4
    assert not (tmp_path / "checkpoints/totals/_floodmark/lease.json").exists()


def test_a_run_goes_on_after_the_last_batch(spark: Any, orders: Path, tmp_path: Path) -> None:
    def raw(session: Any, start: Any) -> Any:
        return read_orders(session, orders).writeStream.format("noop")

    first = go(application(tmp_path, raw), trigger=Trigger(once=True))
    view = Recorded()
    second = go(application(tmp_path, raw), view, progress=tmp_path / "lines.jsonl")
    assert first.pipelines[0].query_id == second.pipelines[0].query_id
    assert view.said[0].startswith("raw: goes on after batch ")
    assert first.pipelines[0].rows + second.pipelines[0].rows == 3
    assert (tmp_path / "lines.jsonl").exists()


def test_parameters_and_settings_reach_the_pipeline(
    spark: Any, orders: Path, tmp_path: Path
) -> None:
    seen = []

    def raw(session: Any, start: Any, *, base: str = "", most: int = 1) -> Any:
        seen.append((most, session.conf.get("spark.sql.shuffle.partitions")))
        return read_orders(session, Path(base)).writeStream.format("noop")

    made = declare(
        tmp_path,
        raw,
        checkpoint="{base}-ck",
        conf={"spark.sql.shuffle.partitions": 3},
    )
    app = Application(tmp_path / "app.py", "f", (made,))
    report = go(app, settings={"base": str(orders), "most": "7"})
    assert seen == [(7, "3")]
    assert report.pipelines[0].checkpoint == f"{orders}-ck"
    # The session that was there before is left as it was.
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    with pytest.raises(WrongUse, match="no pipeline has a parameter 'basis'"):
        go(app, settings={"basis": "x"})


def test_two_pipelines_with_one_checkpoint_are_refused(
    spark: Any, orders: Path, tmp_path: Path
) -> None:
    def first(session: Any, start: Any) -> Any: ...

    def second(session: Any, start: Any) -> Any: ...

    shared = str(tmp_path / "ck")
    pipelines = (
        declare(tmp_path, first, checkpoint=shared),
        declare(tmp_path, second, checkpoint=f"{tmp_path}/x/../ck/"),
    )
    with pytest.raises(Refused, match="pipelines first and second have one checkpoint"):
        go(Application(tmp_path / "app.py", "f", pipelines))


def test_a_refusal_of_one_pipeline_starts_none(spark: Any, orders: Path, tmp_path: Path) -> None:
    def good(session: Any, start: Any) -> Any:
        return read_orders(session, orders).writeStream.format("noop")

    def bad(session: Any, start: Any) -> Any:
        return read_orders(session, orders).writeStream.format("noop").option("checkPoint", "x")

    with pytest.raises(Refused, match="checkpoint"):
        go(application(tmp_path, good, bad))
    assert not (tmp_path / "checkpoints").exists()


def test_a_function_that_fails_is_told_in_its_own_words(spark: Any, tmp_path: Path) -> None:
    def broken(session: Any, start: Any) -> Any:
        raise KeyError("region")

    with pytest.raises(WrongUse) as error:
        go(application(tmp_path, broken))
    assert "KeyError: 'region'" in error.value.what
    assert "raise KeyError" in error.value.why


def failing(orders: Path, times: int, seen: list[int]) -> Any:
    """A pipeline whose sink fails the first times that it is given batch 1."""

    def flaky(session: Any, start: Any) -> Any:
        def write(rows: Any, batch: int) -> None:
            seen.append(batch)
            if batch == 1 and seen.count(1) <= times:
                raise ValueError("the database is away")

        return read_orders(session, orders).writeStream.foreachBatch(write)

    return flaky


def test_a_failure_ends_the_run_and_names_batch_offsets_and_cause(
    spark: Any, orders: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoppedMidway) as error:
        go(application(tmp_path, failing(orders, 1, [])))
    assert error.value.what == "pipeline flaky failed: batch 1"
    assert "ValueError: the database is away" in error.value.why
    assert 'source 0 (file): {"logOffset":0} → {"logOffset":1}' in error.value.why
    assert error.value.status == 5


def test_it_starts_again_on_failure_and_runs_the_batch_again(
    spark: Any, orders: Path, tmp_path: Path
) -> None:
    seen: list[int] = []
    view = Recorded()
    policy = RestartPolicy(True, 5, first_wait=0.01)
    report = go(application(tmp_path, failing(orders, 2, seen)), view, restart=policy)
    assert seen == [0, 1, 1, 1]
    assert report.pipelines[0].restarts == 2
    assert report.pipelines[0].ended == "finished"
    assert "flaky: batch 1 failed: ValueError: the database is away" in view.said
    assert "flaky: runs batch 1 again, which was in flight" in view.said


def test_a_batch_that_fails_the_same_way_again_and_again_stops_the_run(
    spark: Any, orders: Path, tmp_path: Path
) -> None:
    seen: list[int] = []
    policy = RestartPolicy(True, 100, first_wait=0.01)
    with pytest.raises(StoppedMidway, match="failed 3 times in the same way: batch 1"):
        go(application(tmp_path, failing(orders, 99, seen)), restart=policy)
    assert seen == [0, 1, 1, 1]


def test_restarts_have_a_limit(spark: Any, orders: Path, tmp_path: Path) -> None:
    attempts: list[str] = []

    def moody(session: Any, start: Any) -> Any:
        def write(rows: Any, batch: int) -> None:
            attempts.append("x")
            raise ValueError("failure" + "s" * len(attempts))  # never the same twice

        return read_orders(session, orders).writeStream.foreachBatch(write)

    with pytest.raises(StoppedMidway, match="failed 3 times in a row"):
        go(application(tmp_path, moody), restart=RestartPolicy(True, 2, first_wait=0.01))
    assert len(attempts) == 3


def test_the_other_pipelines_finish_their_batch_when_one_fails(
    spark: Any, orders: Path, tmp_path: Path
) -> None:
    def steady(session: Any, start: Any) -> Any:
        return read_orders(session, orders).writeStream.format("noop")

    app = application(tmp_path, steady, failing(orders, 9, []))
    with pytest.raises(StoppedMidway, match="pipeline flaky failed"):
        go(app, trigger=Trigger(processing_time="100 milliseconds"))
    offsets = {path.name for path in (tmp_path / "checkpoints/steady/offsets").glob("[0-9]*")}
    commits = {path.name for path in (tmp_path / "checkpoints/steady/commits").glob("[0-9]*")}
    assert offsets == commits
    assert not (tmp_path / "checkpoints/steady/_floodmark/lease.json").exists()
