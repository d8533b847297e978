"""What is said of a cluster that does not answer, or has nothing to give."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodmark import api
from floodmark.engine.spark.cluster import _Alone, not_started, require_master
from floodmark.errors import NotReachable, WrongUse
from ports import nobody_listens


@pytest.fixture
def listening() -> Iterator[str]:
    """An address that takes connections and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> Iterator[str]:
    with nobody_listens() as port:
        yield f"127.0.0.1:{port}"


def test_a_master_that_is_not_there_is_said_at_once(closed: str) -> None:
    with pytest.raises(NotReachable, match="does not answer") as error:
        require_master({"spark.master": f"spark://{closed}"})
    assert "refused" in error.value.why
    assert "repeat the command" in error.value.do


def test_one_of_several_masters_is_enough(closed: str, listening: str) -> None:
    require_master({"spark.master": f"spark://{closed},{listening}"})
    require_master({"spark.master": "yarn"})
    require_master({})


@pytest.mark.parametrize("url", ["spark://", "spark://host", "spark://host:port", "spark://:1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(WrongUse, match="HOST:PORT"):
        require_master({"spark.master": url})


def test_run_ends_with_the_status_of_a_failure_that_passes(closed: str, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(
        "from floodmark import pipeline\n\n"
        f"@pipeline(checkpoint='{tmp_path}/ck')\n"
        "def rates(spark, start):\n"
        "    return spark.readStream.format('rate').load().writeStream.format('noop')\n"
    )
    with pytest.raises(Exception, match="does not answer") as error:
        api.run(str(app), master=f"spark://{closed}", available_now=True)
    assert getattr(error.value, "status", None) == 5
    assert not (tmp_path / "ck").exists()


def test_a_master_that_stays_silent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up.\n")
    conf = {"spark.master": "spark://127.0.0.1:7077"}
    assert isinstance(not_started(RuntimeError("stopped"), conf, log), NotReachable)
    log.write_text("something else\n")
    other = not_started(RuntimeError("no room"), conf, log)
    assert isinstance(other, WrongUse)
    assert "no room" in other.what


def test_settings_of_spark_need_on_spark(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="--on-spark"):
        api.repartition(str(tmp_path), str(tmp_path / "n"), partitions=2, master="spark://a:1")


def test_an_application_without_executors_is_told_once_and_when_it_has_some_again() -> None:
    said: list[str] = []
    watch = _Alone("nobody", 30, said.append)
    for now, executors in ((0, 0), (20, 0), (29, 0)):
        watch.seen(executors, now)
    assert not said
    watch.seen(0, 31)
    watch.seen(0, 60)
    assert said == ["nobody"]
    watch.seen(1, 61)
    watch.seen(1, 62)
    assert said == ["nobody", "there are executors again"]
    watch.seen(0, 70)
    watch.seen(0, 99)
    assert len(said) == 2, "an executor that is lost for a moment is nothing"
