"""`_floodmark/lease.json` as data: which run of floodmark holds a checkpoint."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from floodmark.checkpoint.layout import NOTES
from floodmark.errors import FileGone
from floodmark.storage.files import Files
from floodmark.storage.process import Process

PATH = f"{NOTES}/lease.json"


@dataclass(frozen=True)
class Holder:
    """Who holds a lease, as the file says it."""

    run: str
    pipeline: str
    host: str
    processes: tuple[Process, ...]
    """The driver's Python and its JVM."""
    beat: int
    beat_ms: int

    @property
    def words(self) -> str:
        pids = ", ".join(str(one.pid) for one in self.processes)
        return f"pipeline {self.pipeline} on host {self.host}, process {pids}"


def render(holder: Holder) -> bytes:
    return json.dumps({"floodmark": "lease", "version": 1, **asdict(holder)}, indent=1).encode()


def parse(data: bytes) -> Holder | None:
    """None for anything else: an unreadable lease holds nothing."""
    try:
        value = json.loads(data)
        processes = tuple(Process(int(p["pid"]), p["started"]) for p in value["processes"])
        return Holder(
            str(value["run"]),
            str(value["pipeline"]),
            str(value["host"]),
            processes,
            int(value["beat"]),
            int(value["beat_ms"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def read_holder(files: Files) -> Holder | None:
    try:
        return parse(files.read(PATH))
    except FileGone:
        return None
