"""Holds all inputs of a rule before a start. Pure: the engine gathers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from floodmark.checkpoint.live_answers import LiveAnswers
from floodmark.checkpoint.model import Checkpoint
from floodmark.connectors.source import SourceOffset
from floodmark.errors import InUse

ABORTABLE = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
"""The class that writes a checkpoint file on S3 with one request."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class StartingSource:
    id: str
    """The id that the checkpoint knows the source by."""
    kind: str
    """Its name in format(): kafka, delta, csv, rate, socket…"""
    options: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Keys in lower case."""
    position: SourceOffset | None = None
    """Where the next batch begins; None for a stream that starts over."""


@dataclass(frozen=True)
class Situation:
    pipeline: str
    location: str
    """The checkpoint's URL with its scheme, as Spark resolves it."""
    master: str = "local"
    checkpoint: Checkpoint | None = None
    stateful: bool = False
    """Whether the checkpoint has state."""
    sources: tuple[StartingSource, ...] = ()
    sink_options: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """The options of the writer; keys in lower case."""
    writer_checkpoint: str | None = None
    """The writer's own checkpointLocation, resolved as `location` is."""
    conf: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """The session's values of the keys that the checkpoint pins, without defaults."""
    outside: LiveAnswers = field(default_factory=LiveAnswers)
    in_use: InUse | None = None
    """Why another run keeps this one from starting: it holds the checkpoint's lease."""
    handed_over: tuple[int, ...] = ()
    """Versions of Delta tables that an upgrade handed over, for a stream with no batch yet."""

    speculates: bool = False
    """Whether DStreams run with spark.speculation: two attempts of a task may save one part."""

    file_manager: str | None = None
    """The class that writes the checkpoint's files; None for Spark's default; empty for no
    class.
    """

    sink: str = ""
    """Its name in format()."""

    output_mode: str = ""

    remote_changes: tuple[str, ...] = ()
    """The differences from the last start, for a query whose plan Spark Connect does not show."""

    def of_kind(self, kind: str) -> Iterator[StartingSource]:
        return (source for source in self.sources if source.kind == kind)
