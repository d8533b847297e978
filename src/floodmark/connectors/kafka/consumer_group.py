"""Writes a stream's committed offsets into a Kafka consumer group, so that lag tools see them.

Spark keeps its offsets only in the checkpoint. The group is a copy for other tools: the stream
never reads it. It must harm nobody, so a group with members is refused, and a group with offsets
that somebody else committed, because a consumer may come back to them. Kafka keeps metadata beside
an offset; it shows which offsets are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from floodmark.checkpoint.relative_path import shown
from floodmark.connectors.behind import GroupCommit
from floodmark.connectors.kafka.admin import Admin, Place, can_be, code_of
from floodmark.connectors.kafka.offset import KIND, parse_kafka_offset
from floodmark.connectors.source import SourceOffset
from floodmark.errors import FloodmarkError, MalformedFile, NoAnswer, Refused, WrongUse

_MARK = "floodmark"
_LONGEST_NAME = 249
_ABSENT = ("GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID")
_HAS_MEMBERS = ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS")


class HeldOffset(NamedTuple):
    offset: int
    metadata: str


class Groups(Protocol):
    """A cluster's consumer groups, through confluent-kafka's client or Spark's own."""

    @property
    def bootstrap(self) -> str: ...

    def members(self, group: str) -> list[str]:
        """Return who reads as this group now; an empty list if there is no such group."""

    def held(self, group: str) -> Mapping[Place, HeldOffset]:
        """Return what the group has committed."""

    def commit(self, group: str, offsets: Mapping[Place, HeldOffset]) -> None: ...


def check_name(group: str) -> str:
    if not group or len(group) > _LONGEST_NAME or not group.isprintable():
        raise WrongUse(
            "--commit-to-group: this is not a valid name of a group",
            f"A name has 1 to {_LONGEST_NAME} printable characters.",
        )
    return group


def group_offsets(positions: Iterable[SourceOffset]) -> dict[Place, int]:
    """Return the offsets of every Kafka source of a stream."""
    return furthest_behind(
        source.offset
        for source in positions
        if source.kind == KIND.name and source.offset is not None
    )


def furthest_behind(offsets: Iterable[Any]) -> dict[Place, int]:
    """Merge offsets; of a partition that two sources read, keep the smaller offset."""
    found: dict[Place, int] = {}
    for offset in offsets:
        for topic, partitions in parse_kafka_offset(offset).items():
            for number, at in partitions.items():
                place = (topic, number)
                found[place] = min(at, found.get(place, at))
    return found


def commit_to_group(
    groups: Groups, group: str, offsets: Mapping[Place, int], query_id: str | None, now_ms: int
) -> GroupCommit:
    """Refuse a group with members or with offsets of others; otherwise commit all at once."""
    check_name(group)
    if not offsets:
        raise NoAnswer(
            f"--commit-to-group {group}: there is no Kafka offset to commit",
            "No source of the stream is Kafka, or no batch is finished yet.",
        )
    strange = next((place for place, at in offsets.items() if not can_be(place, at)), None)
    if strange is not None:
        raise MalformedFile(
            f"--commit-to-group {group}: {shown(strange[0])} partition {strange[1]} has an offset "
            "that Kafka cannot have",
            "The checkpoint's offsets are damaged, or belong to another kind of source.",
        )
    refuse_others(groups, group, offsets, query_id)
    mark = f"{_MARK} {query_id or ''}".rstrip()
    groups.commit(group, {place: HeldOffset(at, mark) for place, at in offsets.items()})
    told: dict[str, dict[str, int]] = {}
    for (topic, number), at in sorted(offsets.items()):
        told.setdefault(topic, {})[str(number)] = at
    return GroupCommit(group, groups.bootstrap, told, now_ms)


def refuse_others(
    groups: Groups, group: str, offsets: Iterable[Place], query_id: str | None
) -> None:
    members = groups.members(group)
    if members:
        raise has_members(group, groups.bootstrap, members)
    mark = f"{_MARK} {query_id or ''}".rstrip()
    held = groups.held(group)
    strange = [place for place in sorted(offsets) if place in held and held[place].metadata != mark]
    if strange:
        topic, number = strange[0]
        whose = held[strange[0]].metadata
        other = (
            f"The offset belongs to another stream ({whose.removeprefix(_MARK).strip()})."
            if whose.startswith(_MARK)
            else "An application may still use it, and would skip records or read them twice."
        )
        raise Refused(
            f"group {group} at {groups.bootstrap} has an offset of {topic} partition {number} that "
            "was not committed for this stream",
            other,
            "Give another name. Or delete the group, if nobody needs it: kafka-consumer-groups "
            f"--delete --group {group} --bootstrap-server {groups.bootstrap}",
        )


def has_members(group: str, bootstrap: str, members: list[str]) -> Refused:
    many = "1 member" if len(members) == 1 else f"{len(members):,} members"
    who = f": {', '.join(members[:3])}" if members else ""
    return Refused(
        f"group {group} at {bootstrap} has {many}{who}",
        "The group's consumers commit their own offsets. If floodmark overwrites them, the "
        "consumers skip records or read them twice.",
        "Give a name that no consumer uses.",
    )


class AdminGroups:
    """Consumer groups through confluent-kafka."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    @property
    def bootstrap(self) -> str:
        return self._admin.bootstrap

    def members(self, group: str) -> list[str]:
        def described() -> Any:
            asked = self._admin.client.describe_consumer_groups(
                [group], request_timeout=self._admin.seconds_left
            )
            return asked[group].result(self._admin.seconds_left)

        try:
            found = self._admin.settled(described)
        except Exception as error:
            if code_of(error) in _ABSENT:
                return []
            raise self._admin.silent(error) from None
        return [f"{one.client_id} at {one.host}" for one in found.members or ()]

    def held(self, group: str) -> dict[Place, HeldOffset]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        def listed() -> Any:
            asked = self._admin.client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=self._admin.seconds_left
            )
            return asked[group].result(self._admin.seconds_left)

        try:
            found = self._admin.settled(listed)
        except Exception as error:
            if code_of(error) in _ABSENT:
                return {}
            raise self._admin.silent(error) from None
        return {
            (one.topic, one.partition): HeldOffset(one.offset, one.metadata or "")
            for one in found.topic_partitions or ()
            if one.error is None and one.offset >= 0
        }

    def commit(self, group: str, offsets: Mapping[Place, HeldOffset]) -> None:
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        parts = [
            TopicPartition(topic, number, at.offset, at.metadata)
            for (topic, number), at in sorted(offsets.items())
        ]

        def altered() -> Any:
            asked = self._admin.client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, parts)],
                request_timeout=self._admin.seconds_left,
            )
            return asked[group].result(self._admin.seconds_left)

        try:
            done = self._admin.settled(altered)
        except Exception as error:
            if code_of(error) in _HAS_MEMBERS:
                raise has_members(group, self.bootstrap, []) from None
            raise self._admin.silent(error) from None
        for one in done.topic_partitions or ():
            if one.error is not None:
                raise self._refused(group, one)

    def _refused(self, group: str, part: Any) -> FloodmarkError:
        if part.error.name() in _HAS_MEMBERS:
            return has_members(group, self.bootstrap, [])
        return Refused(
            f"group {group} at {self.bootstrap}: {part.topic} partition {part.partition} was not "
            "committed",
            str(part.error.str()),
        )
