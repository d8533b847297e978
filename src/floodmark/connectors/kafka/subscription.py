"""Reads from a Kafka source's options which topics, and which of their records, it reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

_ISOLATION, _COMMITTED = "kafka.isolation.level", "read_committed"


def reads_committed(options: Mapping[str, str]) -> bool:
    """Whether the source skips records of open transactions. Keys are in lower case."""
    return options.get(_ISOLATION) == _COMMITTED


def subscribed_topics(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the topics of `subscribe` or `assign`; `subscribePattern` names none.

    Keys are in lower case.
    """
    if "subscribe" in options:
        names = (topic.strip() for topic in options["subscribe"].split(","))
        return tuple(name for name in names if name)
    try:
        return tuple(json.loads(options.get("assign", "{}")))
    except (ValueError, RecursionError, TypeError):
        return ()
