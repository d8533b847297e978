"""Defines the options for running a script: its arguments, and which query is meant."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

DEFAULT_LIMIT_SECONDS = 120.0


@dataclass(frozen=True)
class ScriptOptions:
    arguments: tuple[str, ...] = ()
    """The arguments that the script finds in sys.argv after its own name."""
    query: str | None = None
    """A query's name, or its number in the order of the starts, from 1."""
    py_files: tuple[str, ...] = ()
    """Files as for spark-submit's --py-files: .py, .zip and .egg."""
    limit_seconds: float = DEFAULT_LIMIT_SECONDS
    """The most seconds that the script may run before it starts a query."""

    def shown(self) -> dict[str, object]:
        """Return the options for a plan, with a digest of the arguments, which may hold secrets."""
        found: dict[str, object] = {}
        if self.arguments:
            text = json.dumps(self.arguments)
            found["arguments"] = hashlib.sha256(text.encode()).hexdigest()
        if self.query is not None:
            found["query"] = self.query
        return found
