"""A scenario: one streaming query, what it is fed run by run, and what to ask about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from scripts.golden.place import Place, Rows

Version = tuple[int, int]
Build = Callable[[SparkSession, Place], Any]


@dataclass(frozen=True)
class Run:
    """One start of the query, over what is there by then."""

    files: Mapping[str, Sequence[Rows]] = field(default_factory=dict)
    """source folder → the files that come before this run; the query takes one a batch."""
    conf: Mapping[str, str] = field(default_factory=dict)
    build: Build | None = None
    """Another writer than the scenario's, where this run changes the code."""
    wait: Callable[[], None] | None = None
    """What must have come about before this run starts."""


@dataclass(frozen=True)
class Scenario:
    name: str
    about: str
    build: Build
    """The query's writer, without its trigger and its checkpoint."""
    runs: tuple[Run, ...]
    after: Run | None
    """The restart, made once the checkpoint is kept: what the engine then does is its word."""
    conf: Mapping[str, str] = field(default_factory=dict)
    since: Version = (3, 5)
    only: frozenset[Version] | None = None
    stores: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """A name → the options with which Spark's own reader gives that store's rows."""
    stores_since: Version = (4, 0)
    source_ids: tuple[str, ...] = ()
    """The sources' names in plan order, where they have names."""
    side_files: bool = False
    sink_output: str | None = None

    def runs_on(self, version: Version) -> bool:
        return version >= self.since and (self.only is None or version in self.only)
