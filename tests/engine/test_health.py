"""A supervisor's probes: alive while the loop turns, ready while no pipeline is stalled."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from floodmark.engine.run.listeners.answering import answering
from floodmark.engine.run.listeners.health import Health
from floodmark.errors import WrongUse
from ports import free_port


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def running(clock: Clock, interval: float) -> Health:
    """A pipeline that has committed a few batches."""
    health = Health(clock)
    health.state("sales", "running")
    for _ in range(5):
        clock.now += interval
        health.turned()
        health.committed("sales")
    return health


def test_a_pipeline_is_stalled_when_a_batch_takes_much_longer_than_usual() -> None:
    clock = Clock()
    health = running(clock, 20.0)
    assert health.report().ready
    health.busy("sales", True)
    clock.now += 150
    health.turned()
    (one,) = health.report().pipelines
    assert (one.last_commit_age_s, one.usual_interval_s, one.stalled) == (150.0, 20.0, False)
    clock.now += 100
    health.turned()
    report = health.report()
    assert report.alive
    assert not report.ready
    assert report.pipelines[0].stalled
    health.committed("sales")
    assert health.report().ready


def test_a_source_that_has_nothing_new_is_no_stall() -> None:
    clock = Clock()
    health = running(clock, 1.0)
    health.busy("sales", False)
    clock.now += 200
    health.turned()
    assert health.report().ready


def test_a_loop_that_stands_is_not_alive_unless_it_waits_for_a_last_batch() -> None:
    clock = Clock()
    health = running(clock, 1.0)
    clock.now += 301
    assert not health.report().alive
    health.state("sales", "stopping")
    assert health.report().alive
    assert not health.report().ready


def test_the_answers_over_http() -> None:
    health = Health()
    port = free_port()
    with answering(health.reply, "127.0.0.1", port, "health"):
        assert asked(port, "/livez")[0] == 200
        assert asked(port, "/readyz")[0] == 503, "nothing runs yet"
        health.state("sales", "running")
        status, body = asked(port, "/readyz")
        assert status == 200
        assert body["pipelines"][0]["pipeline"] == "sales"
        assert asked(port, "/other")[0] == 404
        assert by_name(port, "localhost") == by_name(port, f"LOCALHOST:{port}") == 200
        assert by_name(port, "evil.example.com") == by_name(port, "127.0.0.1.evil.com:80") == 403
        with (
            pytest.raises(WrongUse, match="cannot listen"),
            answering(health.reply, "127.0.0.1", port, "health"),
        ):
            pass


def by_name(port: int, host: str) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/livez", headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def asked(port: int, path: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
