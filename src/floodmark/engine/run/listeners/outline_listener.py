"""Keeps the outline of a running query's checkpoint up to date, in a file beside the code.

The listener writes it after the first batch of each start: by then the checkpoint has all that
an outline contains, and that does not change before the next start. An equal file stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.changes.saved_outline import outline_there, save_outline
from floodmark.diagnosis.held import gather_held
from floodmark.engine.run.listeners import Listener
from floodmark.engine.run.listeners.consumer_group import NAME_OF_PIPELINE
from floodmark.engine.run.live_table import View
from floodmark.engine.run.progress import BatchProgress
from floodmark.errors import FloodmarkError, Refused
from floodmark.rules.restarts.outline_file import outline_text
from floodmark.storage.files import Files
from floodmark.storage.load import load

if TYPE_CHECKING:
    from floodmark.engine.start.query_to_start import QueryToStart


@dataclass(frozen=True)
class _Due:
    file: Path
    files: Files
    view: View


class OutlineListener(Listener):
    def __init__(self, file: str) -> None:
        self._file = file
        self._due: dict[str, _Due] = {}
        self._taken: dict[str, str] = {}

    def begins(self, pipeline: str, starting: QueryToStart, view: View, restarts: int) -> None:
        file = self._file.replace(NAME_OF_PIPELINE, pipeline)
        if self._taken.setdefault(file, pipeline) != pipeline:
            raise Refused(
                f"--outline {self._file}: two queries would write to the same file",
                "Each would overwrite the other's outline.",
                f"Put the pipeline's name into it: --outline streams/{NAME_OF_PIPELINE}"
                ".outline.json",
            )
        outline_there(Path(file))
        self._due[pipeline] = _Due(Path(file), starting.files, view)

    def batch(self, batch: BatchProgress) -> None:
        due = self._due.pop(batch.pipeline, None)
        if due is None:
            return
        try:
            text = outline_text(gather_held(due.files, load(due.files)), running=True)
            # The stream may meanwhile use another checkpoint.
            if save_outline(text, str(due.file), replace=True):
                due.view.say(batch.pipeline, f"the outline {due.file} is new: commit it")
        except (FloodmarkError, OSError, ValueError) as error:
            # The stream is more important than a file beside it.
            due.view.say(batch.pipeline, f"the outline {due.file} was not written: {error}")
