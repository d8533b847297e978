"""Defines how `replay` and `compare` run code over past batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.engine.app.options import ScriptOptions


@dataclass(frozen=True)
class ProofRun:
    scratch: str | None = None
    """The folder for forks; None: a temporary one."""
    settings: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    stdout_to_stderr: bool = False
    script: ScriptOptions = field(default_factory=ScriptOptions)
    storage: Mapping[str, Any] | None = None
    say: Callable[[str], Any] = lambda words: None
