"""What the engine's tests share: input files, and pipelines made on the spot."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floodmark.engine.pipelines.application import Application
from floodmark.engine.pipelines.decorator import Pipeline, pipeline
from floodmark.engine.run.progress import BatchProgress
from floodmark.engine.start.launch import start

SCHEMA = "customerId STRING, amountPaid DECIMAL(12, 2)"


def put_orders(folder: Path, name: str, *rows: tuple[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{customer},{amount}\n" for customer, amount in rows)
    hidden = folder / f".{name}.tmp"
    hidden.write_text("customerId,amountPaid\n" + lines)
    hidden.rename(folder / f"{name}.csv")


def read_orders(spark: Any, folder: Path) -> Any:
    reader = spark.readStream.schema(SCHEMA).option("header", True).option("maxFilesPerTrigger", 1)
    return reader.csv(str(folder))


def run(writer: Any, checkpoint: Path, **options: Any) -> Any:
    """A query that ends by itself, started by `floodmark.start`."""
    query = start(writer, checkpoint, **options)
    assert query.awaitTermination(300)
    return query


class JsonStreams:
    """Streams over folders of JSON below one folder: `streams()`, `streams("other")`."""

    schema = ""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def __call__(self, sub: str = "in", schema: str | None = None) -> Any:
        (self.folder / sub).mkdir(exist_ok=True)
        return self.spark.readStream.schema(schema or self.schema).json(str(self.folder / sub))


def application(folder: Path, *functions: Callable[..., Any], **options: Any) -> Application:
    """Each function is a pipeline with a checkpoint of its name below the folder."""
    return Application(
        folder / "app.py",
        hashlib.sha256(b"test").hexdigest(),
        tuple(declare(folder, function, **options) for function in functions),
    )


def declare(folder: Path, function: Callable[..., Any], **options: Any) -> Pipeline:
    options.setdefault("checkpoint", str(folder / "checkpoints" / function.__name__))
    return pipeline(**{"needs": (), **options})(function)


class Recorded:
    """A view that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.batches: list[BatchProgress] = []

    def __enter__(self) -> Recorded:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, pipeline: str, words: str) -> None:
        self.said.append(f"{pipeline}: {words}")

    def state(self, pipeline: str, words: str) -> None:
        return

    def batch(self, batch: BatchProgress) -> None:
        self.batches.append(batch)
