"""Holds what a verb judges: a DataStreamWriter that was not started, and its origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Built:
    """A query's writer that was not started, in a session that lives as long as the `with`."""

    spark: Any
    path: Path
    fingerprint: str
    """SHA-256 of the file."""
    name: str
    writer: Any
    again: Callable[[], Any]
    """Builds the writer again with the code."""
    checkpoint: str | None = None
    """The checkpoint that the code names."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The pipeline's parameters."""
    with_modules: str | None = None
    """SHA-256 of the file and of the modules of its author that it has imported."""

    @property
    def code(self) -> str:
        """The fingerprint by which old and new code are the same in one process."""
        return self.with_modules or self.fingerprint


def configure(session: Any, conf: Mapping[str, str]) -> None:
    """Set SQL settings on this session only: queries of one Spark application may differ."""
    for key, value in conf.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
