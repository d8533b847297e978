"""Defines the options of a run, as `floodmark run` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from floodmark.engine.pipelines.start_positions import Start
from floodmark.engine.run.listeners import Listener
from floodmark.engine.run.new_process import Carried
from floodmark.engine.run.restart_policy import RestartPolicy
from floodmark.engine.run.triggers import Trigger


@dataclass(frozen=True)
class RunOptions:
    trigger: Trigger | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    start: Start = field(default_factory=Start)
    allowed: frozenset[str] = frozenset()
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    progress: Path | None = None
    """None: `_floodmark/progress.jsonl` in each checkpoint on a local disk."""
    conf: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    stdout_to_stderr: bool = False
    carried: Carried = field(default_factory=Carried)
    """The history of this run before its JVM died."""
    listeners: tuple[Listener, ...] = ()
    bisecting: str | None = None
    """The command that finds the record at which a batch fails."""
    async_progress_ms: int | None = None
    """The interval at which Spark's async progress tracking writes the logs."""
