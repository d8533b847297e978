"""When a run writes its consumer group: what is new soon, what is old again, what fails once."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from floodmark.connectors.kafka.consumer_group import HeldOffset
from floodmark.engine.run.listeners.consumer_group import GroupListener
from floodmark.engine.run.progress import BatchProgress, SourceProgress
from floodmark.errors import CannotRead, Refused

SERVERS = "kafka.bootstrap.servers"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Held:
    """A cluster's groups, kept here."""

    bootstrap = "broker:9092"

    def __init__(self) -> None:
        self.offsets: dict[str, dict[tuple[str, int], HeldOffset]] = {}
        self.commits: list[dict[tuple[str, int], int]] = []
        self.consumers: list[str] = []
        self.broken: str | None = None

    def members(self, group: str) -> list[str]:
        return self.consumers

    def held(self, group: str) -> Mapping[tuple[str, int], HeldOffset]:
        return self.offsets.get(group, {})

    def commit(self, group: str, offsets: Mapping[tuple[str, int], HeldOffset]) -> None:
        if self.broken:
            raise CannotRead(self.broken)
        self.offsets[group] = dict(offsets)
        self.commits.append({place: held.offset for place, held in offsets.items()})


class Said:
    def __init__(self) -> None:
        self.words: list[str] = []

    def say(self, pipeline: str, words: str) -> None:
        self.words.append(words)


def starting(kind: str = "kafka", checkpoint: Any = None) -> Any:
    source = SimpleNamespace(kind=kind, options={SERVERS: "broker:9092"})
    return SimpleNamespace(sources=[("0", source)], saved=SimpleNamespace(checkpoint=checkpoint))


def batch(at: int, number: int = 0) -> BatchProgress:
    end = {"orders": {"0": at}}
    sources = (SourceProgress("kafka", None, end, 1, end),)
    return BatchProgress("sales", "q-1", "r", number, "", 1, 1.0, 1, {}, sources, None, None, None)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> tuple[GroupListener, Held, Clock, Said]:
    """Without the thread: the test says when it is time."""
    monkeypatch.setattr(GroupListener, "_wake_up", lambda self: None)
    held, clock, said = Held(), Clock(), Said()
    listener = GroupListener("lag-{pipeline}", lambda _: lambda options: held, clock)
    return listener, held, clock, said


Parts = tuple[GroupListener, Held, Clock, Said]


def test_new_offsets_are_committed_soon_and_old_ones_again_in_time(parts: Parts) -> None:
    listener, held, clock, said = parts
    listener.begins("sales", starting(), said, 0)
    listener.batch(batch(1))
    listener.commit_due("sales")
    listener.batch(batch(2))
    listener.commit_due("sales")  # too soon after the last
    assert held.commits == [{("orders", 0): 1}]
    clock.now += 5
    listener.commit_due("sales")
    assert held.commits[1:] == [{("orders", 0): 2}]
    clock.now += 599
    listener.commit_due("sales")
    assert len(held.commits) == 2
    clock.now += 1
    listener.commit_due("sales")  # the broker would forget them in the end
    assert held.commits[2:] == [{("orders", 0): 2}]
    assert held.offsets["lag-sales"]["orders", 0].metadata == "floodmark q-1"
    assert said.words == []


def test_the_end_of_the_query_commits_at_once(parts: Parts) -> None:
    listener, held, _, said = parts
    listener.begins("sales", starting(), said, 0)
    listener.batch(batch(1))
    listener.commit_due("sales")
    listener.batch(batch(2))
    listener.state("sales", "stopped")
    assert held.commits[-1] == {("orders", 0): 2}
    listener.batch(batch(3))  # nobody keeps it any more
    listener.commit_due("sales")
    assert len(held.commits) == 2


def test_what_goes_wrong_is_said_once_and_tried_again(parts: Parts) -> None:
    listener, held, clock, said = parts
    listener.begins("sales", starting(), said, 0)
    held.broken = "Kafka is away"
    for number in range(3):
        clock.now += 10
        listener.batch(batch(number, number))
        listener.commit_due("sales")
    assert said.words == ["group lag-sales was not written: Kafka is away"]
    held.broken = None
    clock.now += 10
    listener.commit_due("sales")
    assert held.commits == [{("orders", 0): 2}]


def test_a_consumer_that_joins_later_keeps_its_offsets(parts: Parts) -> None:
    listener, held, _, said = parts
    listener.begins("sales", starting(), said, 0)
    held.consumers = ["billing at /10.0.0.7"]
    listener.batch(batch(1))
    listener.commit_due("sales")
    assert held.commits == []
    assert "has 1 member: billing" in said.words[0]


def test_a_group_that_is_somebodys_is_refused_before_the_start(parts: Parts) -> None:
    listener, held, _, said = parts
    held.consumers = ["billing at /10.0.0.7"]
    with pytest.raises(Refused, match="has 1 member"):
        listener.begins("sales", starting(), said, 0)


def test_two_queries_do_not_share_a_group(parts: Parts) -> None:
    _, held, clock, said = parts
    listener = GroupListener("one", lambda _: lambda options: held, clock)
    listener.begins("sales", starting(), said, 0)
    listener.begins("sales", starting(), said, 1)  # a restart
    with pytest.raises(Refused, match="two queries") as error:
        listener.begins("other", starting(), said, 0)
    assert "--commit-to-group one-{pipeline}" in error.value.do


def test_a_query_without_kafka_is_told_so(parts: Parts) -> None:
    listener, held, _, said = parts
    listener.begins("sales", starting("csv"), said, 0)
    assert said.words == ["nothing is committed to group lag-sales: no source is Kafka"]
    listener.batch(batch(1))
    listener.state("sales", "finished")
    assert held.commits == []
