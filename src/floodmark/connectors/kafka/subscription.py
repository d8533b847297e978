"""The topics that a Kafka source's options name. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping


def subscribed_topics(options: Mapping[str, str]) -> tuple[str, ...]:
    """The topics of `subscribe` or `assign`; `subscribePattern` names none. Keys in lower case."""
    if "subscribe" in options:
        names = (topic.strip() for topic in options["subscribe"].split(","))
        return tuple(name for name in names if name)
    try:
        return tuple(json.loads(options.get("assign", "{}")))
    except (ValueError, RecursionError, TypeError):
        return ()
