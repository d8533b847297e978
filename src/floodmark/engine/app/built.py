"""The object that is judged: a DataStreamWriter that was not started, and its origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Built:
    """A query's writer, not started, in a session that lives as long as the `with`."""

    spark: Any
    path: Path
    fingerprint: str
    """SHA-256 of the file."""
    name: str
    writer: Any
    again: Callable[[], Any]
    """The writer, built by the code once more."""
    checkpoint: str | None = None
    """As the code names it."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """A pipeline's parameters."""


def configure(session: Any, conf: Mapping[str, str]) -> None:
    """Queries that share a Spark application keep their SQL settings apart."""
    for key, value in conf.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
