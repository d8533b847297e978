"""Declares pipelines with `@pipeline`: a function that returns a writer, and its checkpoint.

Nothing here needs Spark: importing the file declares a pipeline, and only the runtime builds it,
when it calls the function with a session.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.engine.pipelines.declaration import Declaration
from floodmark.engine.pipelines.parameters import declared
from floodmark.errors import WrongUse

_BY_NAME = ("kafka", "delta")
CONNECTORS = (*_BY_NAME, "s3")
_ON_S3 = "s3a://"


@dataclass(frozen=True)
class Pipeline(Declaration):
    needs: tuple[str, ...]
    """The connectors whose jars the pipeline needs."""
    conf: Mapping[str, str]

    def __call__(self, spark: Any, start: Any, **values: Any) -> Any:
        """Call the plain function, so that a user's own test can call a pipeline."""
        return self.function(spark, start, **values)


def pipeline(
    checkpoint: str | Path,
    *,
    name: str | None = None,
    needs: Iterable[str] | None = None,
    conf: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Pipeline]:
    """Declare a streaming pipeline: `def orders(spark, start, *, region="eu"): return writer`.

    `checkpoint` may use the function's parameters by name: `"data/{region}/checkpoint"`.
    `needs` names connectors ("kafka", "delta", "s3"); by default the source code shows them.
    """
    if callable(checkpoint) or not str(checkpoint):
        raise WrongUse(
            "@pipeline has no checkpoint",
            "A pipeline without a checkpoint cannot continue after a crash.",
            'Write @pipeline(checkpoint="data/checkpoints/orders").',
        )

    def declare(function: Callable[..., Any]) -> Pipeline:
        return Pipeline(
            name or function.__name__,
            str(checkpoint),
            function,
            declared(function),
            _known(needs) if needs is not None else _needs_of(function),
            {key: _text(value) for key, value in (conf or {}).items()},
        )

    return declare


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _known(needs: Iterable[str]) -> tuple[str, ...]:
    wanted = (needs,) if isinstance(needs, str) else tuple(needs)
    for connector in wanted:
        if connector not in CONNECTORS:
            raise WrongUse(
                f"needs={connector!r}: floodmark does not know this connector",
                f"It knows {', '.join(CONNECTORS)}.",
                "Give other jars with --conf spark.jars=… or spark.jars.packages=….",
            )
    return wanted


def _needs_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the connectors that the file names: format("kafka"), start.delta(…), once.delta(…)."""
    try:
        return connectors_named_in(Path(inspect.getfile(inspect.unwrap(function))))
    except TypeError:
        return ()


def connectors_named_in(path: Path) -> tuple[str, ...]:
    """Return the connectors that a Python file names; empty for an unreadable file."""
    try:
        return connectors_named(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()


def connectors_named(code: str) -> tuple[str, ...]:
    try:
        tree = ast.parse(code)
    except (ValueError, SyntaxError):
        return ()
    texts = [
        node.value.lower()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = {*texts, *(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))}
    found = named & set(_BY_NAME) | set(connectors_reached(texts))
    return tuple(connector for connector in CONNECTORS if connector in found)


def connectors_reached(places: Iterable[str]) -> tuple[str, ...]:
    """Return the connectors that Spark needs to reach these addresses."""
    return ("s3",) if any(_ON_S3 in place for place in places) else ()
