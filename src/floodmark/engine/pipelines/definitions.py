"""Holds what a declarative pipeline's files define: flows, and their tables and views."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.storage.pipeline_spec import PipelineSpec

VIEW = "TemporaryView"


@dataclass(frozen=True)
class FlowDefinition:
    name: str
    target: str
    spark_conf: Mapping[str, str]
    func: Callable[[], Any]
    """Returns the flow's DataFrame."""
    file: Path
    line: int | None = None
    """The line of an SQL statement; an exception of Python names its own line."""


@dataclass(frozen=True)
class OutputDefinition:
    kind: str
    """The name of PySpark's class: StreamingTable, MaterializedView, TemporaryView, Sink."""
    format: str | None = None


@dataclass
class Definitions:
    spec: PipelineSpec
    outputs: dict[str, OutputDefinition] = field(default_factory=dict)
    flows: list[FlowDefinition] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    not_judged: list[tuple[str, str]] = field(default_factory=list)
    """(flow, table) of AUTO CDC, which keeps its state in its table, not in its checkpoint."""
    own_conf: dict[str, str | None] = field(default_factory=dict)
    """The session's own values of settings that any flow sets; None: not set."""

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256("\0".join(self.texts).encode()).hexdigest()

    @property
    def views(self) -> list[FlowDefinition]:
        return [one for one in self.flows if self._is_view(one)]

    @property
    def tables(self) -> list[FlowDefinition]:
        """Return the flows into tables and sinks; streaming flows among them have a checkpoint."""
        return [one for one in self.flows if not self._is_view(one)]

    def output_of(self, flow: FlowDefinition) -> OutputDefinition | None:
        """Return a flow's output; SQL and Python may name a table with or without its schema."""
        found = self.outputs.get(flow.target)
        if found is not None:
            return found
        last = last_part(flow.target)
        same = (output for name, output in self.outputs.items() if last_part(name) == last)
        return next(same, None)

    def _is_view(self, flow: FlowDefinition) -> bool:
        output = self.output_of(flow)
        return output is not None and output.kind == VIEW


def last_part(name: str) -> str:
    return name.rpartition(".")[2]
