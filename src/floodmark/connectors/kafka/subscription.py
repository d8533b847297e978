"""What a Kafka source's options say it reads: which topics, and which records of them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

_ISOLATION, _COMMITTED = "kafka.isolation.level", "read_committed"


def reads_committed(options: Mapping[str, str]) -> bool:
    """Records of open transactions are not for it. Keys in lower case."""
    return options.get(_ISOLATION) == _COMMITTED


def subscribed_topics(options: Mapping[str, str]) -> tuple[str, ...]:
    """The topics of `subscribe` or `assign`; `subscribePattern` names none. Keys in lower case."""
    if "subscribe" in options:
        names = (topic.strip() for topic in options["subscribe"].split(","))
        return tuple(name for name in names if name)
    try:
        return tuple(json.loads(options.get("assign", "{}")))
    except (ValueError, RecursionError, TypeError):
        return ()
