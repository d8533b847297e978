"""Finds the application that the last start of a checkpoint noted, if it still exists.

A note is a file of the checkpoint, and somebody else may have written it. Its code is used only
if the file belongs to this user or to the system.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.checkpoint.model import Checkpoint
from floodmark.engine.app.script_text import read_source
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.redaction import Redaction, is_hidden
from floodmark.storage.files import Files
from floodmark.storage.last_start import acting_note

_GIVE = "Name the code: --app APP.py[:NAME]"
_CODE = (".py", ".ipynb")


@dataclass(frozen=True)
class NotedApplication:
    path: str | None = None
    pipeline: str | None = None
    fingerprint: str | None = None
    parameters: Mapping[str, str] | None = None
    """Parameters as the note has them: their text is hidden."""
    salt: str = ""

    def is_same(self, fingerprint: str) -> bool | None:
        return None if self.fingerprint is None else self.fingerprint == fingerprint

    @property
    def settings(self) -> dict[str, str]:
        """Return the parameters whose values the note shows."""
        noted = self.parameters or {}
        return {k: v for k, v in noted.items() if not is_hidden(v) and v != str(None)}

    def target(self) -> str:
        """Return APP.py[:NAME]; refuse where the note does not lead to code on this machine."""
        if self.path is None:
            raise WrongUse(
                "this checkpoint has no note of the code that made it",
                "Only a start by floodmark leaves such a note.",
                _GIVE,
            )
        place = Path(self.path)
        if not place.is_file():
            raise WrongUse(
                f"the application that the last start noted is not here: {self.path}",
                "It was moved or removed, or the query ran on another machine.",
                _GIVE,
            )
        if hasattr(os, "geteuid") and place.stat().st_uid not in (os.geteuid(), 0):
            raise WrongUse(
                f"the application that the last start noted is another user's: {self.path}",
                "Only a file in the checkpoint says that this code should run.",
                f"If you trust it, name it: --app {self.path}",
            )
        return f"{self.path}:{self.pipeline}" if self.pipeline else self.path

    def require_values(self, values: Mapping[str, Any]) -> None:
        """Refuse parameter values that differ from those of the last start."""
        noted = {k: v for k, v in (self.parameters or {}).items() if k in values}
        now = Redaction(self.salt).parameters({name: values[name] for name in noted})
        for name, value in noted.items():
            if now[name] != value:
                raise WrongUse(
                    f"the last start had another value of {name}",
                    "Its note does not show the value, as text may be a secret. With another value "
                    "it would be another query.",
                    f"Give it: --set {name}=VALUE",
                )


def noted_application(files: Files, checkpoint: Checkpoint) -> NotedApplication:
    note = acting_note(files, checkpoint.committed_batch) or {}
    path, fingerprint = note.get("application"), note.get("code_fingerprint")
    if not isinstance(path, str) or not path.endswith(_CODE):
        return NotedApplication()
    given, salt = note.get("parameters"), note.get("salt")
    values = given if isinstance(given, dict) else {}
    return NotedApplication(
        path,
        _pipeline(path, note.get("pipeline")),
        fingerprint if isinstance(fingerprint, str) else None,
        {str(name): str(value) for name, value in values.items()},
        salt if isinstance(salt, str) else "",
    )


def _pipeline(path: str, name: Any) -> str | None:
    """Return the pipeline's name; None for a script, whose query is found by its checkpoint."""
    try:
        declares = read_source(Path(path)).declares_pipelines()
    except FloodmarkError:
        return None
    return name if declares and isinstance(name, str) else None
