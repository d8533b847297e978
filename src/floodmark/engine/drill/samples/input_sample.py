"""Describes the sample that takes the place of one source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InputSample:
    kind: str
    """`folder` of files or of a Delta table, `portions` of lines, or a Kafka `topic`."""
    place: str
    servers: str | None = None
    """The servers of a topic that is not on the code's own broker."""
    port: int | None = None
    """The port that gives the lines of portions to a socket source, each line once."""
