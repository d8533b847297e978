"""Reads offsets of MongoDB's change streams: a resume token, or the time to begin at. Pure.

`{"version": 1, "offset": {"_data": "8263…"}}` or `{"version": 1, "offset": {"$timestamp": …}}`
(MongoOffset); the connector's first releases wrote the token alone. The connector puts spaces as
Python does, so the fields show the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.text import moment, shorten
from floodmark.connectors.source import FormedKind, has_fields

_FORM = frozenset({"version", "offset"})
_TOKEN = frozenset({"_data"})
_TOKEN_MORE = frozenset({"_typeBits"})  # of keys that hold numbers of several types
_TIME = frozenset({"$timestamp"})
_NO_TIME = 2**32 - 1  # -1 as an unsigned number: the stream begins where it is first opened


class MongoDb(FormedKind):
    name = "mongodb"
    may_be_left_out = _TOKEN_MORE
    told_by = "a change stream's resume token or its time"
    going_back = (
        "resumes only at tokens that the oplog still has. MongoDB refuses older ones; floodmark "
        "does not ask the oplog"
    )
    no_option = "MongoDB's change.stream.startup.mode begins at a time, not at a resume token."

    def has_form(self, offset: Any) -> bool:
        place = _place(offset)
        return (
            (has_fields(place, _TOKEN, _TOKEN_MORE) and isinstance(place["_data"], str))
            or has_fields(place, _TIME)
            or (place == {} and place is not offset)
        )

    def words(self, offset: Mapping[str, Any]) -> str:
        place = _place(offset)
        if "_data" in place:
            return f"after token {shorten(str(place['_data']), 40)}"
        time = place.get("$timestamp")
        seconds = time.get("t") if isinstance(time, dict) else None
        if type(seconds) is not int or not 0 <= seconds < _NO_TIME:
            return "from where the change stream is first opened"
        return f"from {moment(seconds * 1000)}"


def _place(offset: Any) -> Any:
    return offset["offset"] if has_fields(offset, _FORM) and offset["version"] == 1 else offset


KIND = MongoDb()
