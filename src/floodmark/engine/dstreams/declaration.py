"""Declares DStreams with `@dstream`: a function that builds them, and their checkpoint."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.engine.dstreams.intervals import milliseconds_of, state_interval
from floodmark.engine.pipelines.declaration import Declaration
from floodmark.engine.pipelines.parameters import declared_after
from floodmark.errors import WrongUse


@dataclass(frozen=True)
class DStreamPipeline(Declaration):
    batch_ms: int
    save_state_ms: int | None
    """The interval at which state is saved; None for the default."""
    conf: Mapping[str, str]

    def __call__(self, ssc: Any, **values: Any) -> Any:
        """Call the plain function, so that a user's own test can call it."""
        return self.function(ssc, **values)


def dstream(
    checkpoint: str | Path,
    *,
    batch: str | float,
    save_state: str | float | None = None,
    name: str | None = None,
    conf: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], DStreamPipeline]:
    """Declare DStreams: `def orders(ssc, *, region="eu"): ssc.textFileStream(…)…`.

    `batch` is the interval of batches ("5s"). `save_state` is the interval at which state is saved;
    by default it is 5 to 10 batches and at least 10 seconds.
    """
    if callable(checkpoint) or not str(checkpoint):
        raise WrongUse(
            "@dstream has no checkpoint",
            "Without a checkpoint nothing continues after a crash.",
            'Write @dstream(checkpoint="data/checkpoints/orders", batch="5s").',
        )
    batch_ms = milliseconds_of(batch, "batch")
    saved_ms = None if save_state is None else milliseconds_of(save_state, "save_state")
    state_interval(batch_ms, saved_ms)  # refuses an interval that is not a multiple

    def declare(function: Callable[..., Any]) -> DStreamPipeline:
        own = name or str(getattr(function, "__name__", "dstream"))
        if not inspect.signature(function).parameters:
            raise WrongUse(
                f"dstream {own} has no parameter",
                "Floodmark calls it with the StreamingContext for its streams.",
                f"Write def {own}(ssc): …",
            )
        return DStreamPipeline(
            own,
            str(checkpoint),
            function,
            declared_after(function, 1),
            batch_ms,
            saved_ms,
            {key: str(value) for key, value in (conf or {}).items()},
        )

    return declare
