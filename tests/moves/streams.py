"""The streams of the campaign: what each reads, computes and writes to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moves.outputs import OUTPUTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCHES = 3


@dataclass(frozen=True)
class Shape:
    name: str
    mode: str

    def __call__(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions

        if self.name == "distinct":
            frame = frame.select("key").dropDuplicates(["key"])
        elif self.name == "totals":
            frame = frame.groupBy("key").agg(functions.sum("id").alias("total"))
        elif self.name == "windows":
            # A piece of the input is a window of a minute: the next piece closes it.
            timed = frame.select(functions.expr("timestamp_seconds(id * 6)").alias("at"))
            windows = timed.withWatermark("at", "0 seconds").groupBy(
                functions.window("at", "60 seconds")
            )
            frame = windows.count().selectExpr("unix_seconds(window.start) start", "count")
        return frame.select(functions.to_json(functions.struct("*")).alias("value"))

    def expected(self, fed: int) -> Iterator[str]:
        """The rows over all of the input, for shapes that write each row once."""
        for number in range(fed):
            if self.name == "stateless":
                yield _text(id=number * 10, key="all")
                yield _text(id=number * 10 + 1, key=f"k{number}")
            elif self.name == "distinct":
                yield _text(key=f"k{number}")
            elif self.name == "windows" and number < fed - 1:
                yield _text(start=number * 60, count=2)


def _text(**row: int | str) -> str:
    return json.dumps(row, separators=(",", ":"))


SHAPES = (
    Shape("stateless", "append"),
    Shape("distinct", "append"),
    Shape("totals", "update"),
    Shape("totals", "complete"),
    Shape("windows", "append"),
)


@dataclass(frozen=True)
class Stream:
    sink: str
    shape: Shape
    in_flight: bool
    noted: bool
    """The sink stands in a note of a start; else the plan speaks of every kind."""
    source: str = "files"

    def __str__(self) -> str:
        flight = "in-flight" if self.in_flight else "committed"
        known = "noted" if self.noted else "unknown"
        source = "" if self.source == "files" else f"-from-{self.source}"
        return f"{self.sink}-{self.shape.name}-{self.shape.mode}-{flight}-{known}{source}"


def streams() -> tuple[Stream, ...]:
    """Every sink with every shape that it takes; whether it is noted goes by turns."""
    combinations = [
        (sink, shape, in_flight, "files")
        for sink, output in OUTPUTS.items()
        for shape in SHAPES
        if shape.mode in output.modes
        for in_flight in (False, True)
    ]
    stateless, distinct, update = SHAPES[:3]
    second = {"file": distinct, "delta": distinct, "append": update}
    combinations += [
        (sink, shape, in_flight, source)
        for source in ("kafka", "delta")
        for sink, other in second.items()
        for shape in (stateless, other)
        for in_flight in (False, True)
    ]
    return tuple(
        Stream(sink, shape, in_flight, turn // 2 % 2 == 0, source)
        for turn, (sink, shape, in_flight, source) in enumerate(combinations)
    )
