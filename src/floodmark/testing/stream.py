"""Runs a pipeline under test: feeds rows, runs its driver, kills it and starts it again.

The checkpoint and the sinks are in a folder of the test; the pipeline's own are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark import api
from floodmark.api.arguments import script_options
from floodmark.drills.points import POINTS, Point
from floodmark.engine.drill.drilled_run import Killing, Run
from floodmark.engine.drill.killing.traps import batches
from floodmark.engine.drill.run_spec import RunSpec
from floodmark.engine.drill.samples.input_sample import InputSample
from floodmark.engine.drill.samples.sampled_sources import write_portions
from floodmark.errors import NoAnswer, WrongUse
from floodmark.statestore.view import StateView


@dataclass(frozen=True)
class Killed:
    """The batch that a kill has hit."""

    point: str
    batch: int | None
    """The batch that runs again; None where it was committed."""


class StreamUnderTest:
    """One query of `APP.py[:NAME]`, with a checkpoint and sinks of its own below `folder`.

    Fed rows replace the rows of its source, and each `feed` is one batch; `sources` is the number
    of streams that the code reads.
    """

    def __init__(
        self,
        app: str | Path,
        folder: str | Path,
        *,
        sources: int = 1,
        settings: Mapping[str, str] | None = None,
        arguments: Iterable[str] = (),
        query: str | int | None = None,
        py_files: str | Iterable[str] = (),
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        folder = Path(folder).absolute()
        self._shared = folder / "sample"
        inputs = []
        for number in range(sources):
            portions = self._shared / f"lines-{number}"
            portions.mkdir(parents=True)
            inputs.append(InputSample("portions", str(portions)))
        self._spec = RunSpec(
            str(app),
            str(folder / "run"),
            str(self._shared),
            tuple(inputs),
            dict(settings or {}),
            {key: str(value) for key, value in (conf or {}).items()},
            script_options(arguments, query, py_files, None),
        )
        self._run: Run | None = None

    @property
    def checkpoint(self) -> str:
        """Return the location of the checkpoint, for every other function of floodmark."""
        return str(Path(self._spec.folder, "checkpoint"))

    def feed(self, rows: Iterable[Mapping[str, Any] | str], source: int = 0) -> None:
        """Add one batch: rows by column name, or plain lines (Kafka's values, text)."""
        lines = [one if isinstance(one, str) else json.dumps(one, default=str) for one in rows]
        if not lines:
            raise WrongUse("no rows to feed", do="Give at least one row.")
        if not 0 <= source < len(self._spec.inputs):
            raise WrongUse(
                f"there is no source {source}",
                do="Say how many streams the code reads: sources=2.",
            )
        write_portions(lines, Path(self._spec.inputs[source].place), 1)

    def run(self) -> None:
        """Start the driver, and wait until it has read all fed rows."""
        self._started().to_the_end()

    def kill(self, at: str = "after-sink") -> Killed:
        """Start the driver, and kill it at this point of its next batch.

        Points: after-offset, during-state, during-sink, after-sink, after-commit.
        """
        point = next((one for one in POINTS if one.value == at), None)
        if point is None:
            raise WrongUse(
                f"there is no point {at!r}",
                f"Points: {', '.join(one.value for one in POINTS)}.",
            )
        run = self._started()
        found = run.kill(Killing(point, self._next_batch()))
        if found is None:
            raise NoAnswer(
                f"the driver ended before it could be killed {at}",
                "There was nothing to read, or the batch was too fast.",
                "Feed some rows first.",
            )
        batch = found.in_flight if found.point is not Point.AFTER_COMMIT else None
        return Killed(found.point.value, batch)

    def rows(self, sink: str | None = None) -> list[dict[str, Any]]:
        """Return the sink's rows after the last `run`; `sink` is the end of one sink's location."""
        if self._run is None:
            raise WrongUse("the stream has not run yet", do="Call run() first.")
        found = self._run.rows()
        chosen = [rows for place, rows in found.items() if sink is None or place.endswith(sink)]
        if len(chosen) != 1:
            raise WrongUse(
                f"{len(chosen)} sinks are meant",
                f"Sinks: {', '.join(found) or 'none'}.",
                'Name one by the end of its place: rows(sink="totals").',
            )
        return chosen[0]

    def state(self, operator: int = 0, store: str | None = None) -> StateView:
        """Return the state after the last committed batch."""
        return api.open(self.checkpoint).state(operator, store)

    def close(self) -> None:
        if self._run is not None:
            self._run.__exit__()

    def _started(self) -> Run:
        if self._run is None:
            self._run = Run(self._spec)
        return self._run

    def _next_batch(self) -> int:
        committed = batches(Path(self.checkpoint, "commits"))
        return max(committed, default=-1) + 1
