"""Describes one run of a drill in a JSON file, as the driver is another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.drill.samples.input_sample import InputSample

SPEC, SINKS, ERROR, ROWS, MARKS = "spec.json", "sinks.json", "error.json", "rows", "marks"
CHECKPOINT, FACTS = "checkpoint", "facts.json"
STARTED, HELD, SENT = "started", "held", "sent"


@dataclass(frozen=True)
class RunSpec:
    target: str
    folder: str
    """The folder of this run: checkpoint, sinks, marks, logs."""
    shared: str
    """The folder that all runs share: the sample, cut into portions."""
    inputs: tuple[InputSample, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    script: ScriptOptions = field(default_factory=ScriptOptions)
    database: str | None = None
    """A copy of the PostgreSQL database that --sink names, for this run."""
    carry_on: bool = False
    """True to begin with copies of the pipeline's own checkpoint and sinks, if there are any."""
    archive: str | None = None
    """A class archive of the JVM: the first run writes it here, and the next runs start with it in
    little more than half the time."""

    def write(self) -> Path:
        path = Path(self.folder, SPEC)
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        path.chmod(0o600)  # settings may hold secrets
        return path


def read_spec(path: Path) -> RunSpec:
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    script = told.pop("script")
    script["arguments"], script["py_files"] = tuple(script["arguments"]), tuple(script["py_files"])
    inputs = tuple(InputSample(**one) for one in told.pop("inputs"))
    return RunSpec(**told, inputs=inputs, script=ScriptOptions(**script))


@dataclass(frozen=True)
class SinkNote:
    """One place that the pipeline writes to, and the place in the run that got its rows."""

    real: str
    place: str
    kind: str
    """delta, parquet, json, …; `lines` for a plain file; `sqlite`, `postgresql`."""
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    by: str = "spark"
    """`spark`: the query's own sink; `function`: its foreachBatch function."""
    transaction: str | None = None
    """The txnAppId of a Delta write."""
    append: bool = False
    copied: bool = False
    """True where the sink began as a copy of the real one."""


def read_notes(folder: Path) -> tuple[SinkNote, ...]:
    try:
        text = (folder / SINKS).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    return tuple(SinkNote(**one) for one in json.loads(text))
