"""Chooses where a run's writes go: each place of the pipeline has a place in the run."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from floodmark.engine.app.choosing import place_of
from floodmark.engine.drill.run_spec import SINKS, SinkNote, read_notes
from floodmark.engine.proof.scratch import require_outside

_TABLE = "table "
NO_FOLDER = ("lines", "postgresql")
_LONGEST = 60


class Places:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._notes = {note.real: note for note in read_notes(folder)}
        self.bring: Callable[[str, Path], bool] = lambda _real, _place: False
        """Puts a copy of the real sink at its place; returns False where the sink begins empty."""

    def of(self, real: str) -> Path:
        """Return the run's place for a path or URL; a path of the run stays."""
        place = place_of(real)
        if Path(place).is_relative_to(self.folder):
            return Path(place)
        return self._own("sinks", place)

    def of_table(self, name: str) -> Path:
        return self._own("sinks", _TABLE + name.replace("`", "").lower())

    def of_file(self, path: str) -> Path:
        return self._own("files", path)

    def of_database(self, path: str) -> Path:
        return self._own("databases", path)

    def in_sink(self, path: str) -> Path | None:
        """Return the run's place for a path in a sink that Spark has written in this run."""
        for note in self.notes:
            real = Path(place_of(note.real))
            if note.kind not in NO_FOLDER and Path(path).is_relative_to(real):
                return Path(note.place) / Path(path).relative_to(real)
        return None

    def _own(self, kind: str, place: str) -> Path:
        digest = hashlib.sha256(place.encode()).hexdigest()[:8]
        words = re.sub(r"[^A-Za-z0-9.=-]+", "-", place).strip("-.")[-_LONGEST:]
        return self.folder / kind / f"{words}-{digest}"

    def note(self, note: SinkNote) -> None:
        """Keep a note of the sink for the process that reads the sinks afterwards."""
        if not note.real.startswith(_TABLE):
            require_outside(self.folder, "--scratch", note.real, "what the pipeline writes to")
        with self._lock:
            before = self._notes.get(note.real)
            if before is not None:
                note = replace(
                    note,
                    transaction=note.transaction or before.transaction,
                    append=note.append or before.append,
                )
            if before == note:
                return
            self._notes[note.real] = note
            beside = self.folder / f".{SINKS}"
            beside.write_text(json.dumps([asdict(one) for one in self._notes.values()]))
            beside.rename(self.folder / SINKS)

    @property
    def notes(self) -> tuple[SinkNote, ...]:
        return tuple(self._notes.values())
