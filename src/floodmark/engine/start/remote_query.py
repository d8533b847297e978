"""Reads what a writer of Spark Connect is about to start, from the message that it will send.

The message has the query as the code wrote it, before any analysis: sources with their options,
the sink, and a plan with which two starts can be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from floodmark.engine.code.query import Source

_TRIGGERS = (
    "processing_time_interval",
    "available_now",
    "once",
    "continuous_checkpoint_interval",
    "real_time_batch_duration",
)


class RemoteQuery:
    """A query as its client sees it."""

    def __init__(self, writer: Any) -> None:
        from pyspark.sql.connect import proto

        command = writer._write_stream.command(writer._session.client)
        message = proto.WriteStreamOperationStart()
        message.CopyFrom(command.write_stream_operation_start)
        self._message = message

    @property
    def name(self) -> str | None:
        return self._message.query_name or None

    @property
    def sink(self) -> str:
        if self._message.HasField("foreach_batch"):
            return "foreachBatch"
        return str(self._message.format or ("foreach" if self._has_foreach else ""))

    @property
    def sink_options(self) -> dict[str, str]:
        """Return the sink's options; keys are in lower case, as in the JVM's writer."""
        found = {str(key).lower(): str(value) for key, value in self._message.options.items()}
        return {**found, "path": self._message.path} if self._message.path else found

    @property
    def output_mode(self) -> str:
        return str(self._message.output_mode or "append")

    @property
    def trigger(self) -> str:
        chosen = self._message.WhichOneof("trigger")
        return f"{chosen}: {getattr(self._message, chosen)}" if chosen in _TRIGGERS else ""

    @property
    def sources(self) -> tuple[Source, ...]:
        """Return the sources in the order of the plan, which is the order of their offsets."""
        return tuple(_source(one) for one in _reads(self._message.input) if one.is_streaming)

    @property
    def digest(self) -> str:
        """Return a digest that is equal for equal code: without a session's numbers of plans."""
        plain = type(self._message)()
        plain.CopyFrom(self._message)
        _forget_numbers(plain.input)
        parts = plain.input.SerializeToString(deterministic=True), plain.output_mode.encode()
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    @property
    def _has_foreach(self) -> bool:
        return bool(self._message.HasField("foreach_writer"))


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message and all messages in it, depth first."""
    yield message
    for _, value in message.ListFields():
        if _is_message(value):
            yield from _messages(value)
        elif not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
            for one in value.values() if hasattr(value, "values") else value:
                if _is_message(one):
                    yield from _messages(one)


def _is_message(value: Any) -> bool:
    return hasattr(value, "ListFields")


def _reads(message: Any) -> Iterator[Any]:
    return (one for one in _messages(message) if type(one).__name__ == "Read")


def _forget_numbers(message: Any) -> None:
    for one in _messages(message):
        names = {field.name for field in one.DESCRIPTOR.fields}
        for name in ("common", "plan_id"):
            if name in names:
                one.ClearField(name)


def _source(read: Any) -> Source:
    data = read.data_source
    options = {str(key).lower(): str(value) for key, value in data.options.items()}
    if read.HasField("named_table"):
        named = read.named_table
        options = {str(key).lower(): str(value) for key, value in named.options.items()}
        return Source("table", options, f"table {named.unparsed_identifier}")
    paths = list(data.paths)
    if paths:
        options["path"] = paths[0]
    return Source(str(data.format or "").lower(), options, f"{data.format} {paths}", data.schema)
