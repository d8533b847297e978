"""Finds state that no watermark or timeout removes."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import GROUPINGS, Code, Operation, Stream
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM217",
    "state-without-watermark",
    Severity.WARNING,
    finds="dropDuplicates, a join of two streams, a grouping or a stateful function without a "
    "watermark or a timeout.",
    matters="Spark removes state when the watermark has passed it. Without one every key is kept "
    "forever, in memory and in the checkpoint.",
    restart="Each start loads all of it.",
    instead='.withWatermark("eventTime", "1 hour") before the operator, or a timeout in the '
    "function.",
)
_DROPS = frozenset({"dropDuplicates", "drop_duplicates", "distinct"})


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        if not stream.reads:
            continue  # the code that made the stream may have set a watermark
        watermark = stream.has_watermark
        for operation in stream.operations:
            found = _timeless(operation) or (None if watermark else _unbounded(operation, stream))
            if found is not None:
                what, severity = found
                yield RULE.finding(code.path, what, line=operation.line, severity=severity)


def _unbounded(operation: Operation, stream: Stream) -> tuple[str, Severity] | None:
    if operation.name in _DROPS:
        return f"{operation.name}() without a watermark keeps every key.", Severity.WARNING
    if operation.name == "join" and operation.other_is_stream:
        return "A join of two streams without a watermark keeps every row.", Severity.WARNING
    if operation.name in GROUPINGS and stream.output_mode == "update":
        windows = any(call.endswith("window") for a in operation.arguments for call in a.calls)
        if windows:
            return "Windows without a watermark are never closed.", Severity.WARNING
        return (
            "A grouping without a watermark keeps every key: right for a few keys, not for ids.",
            Severity.ADVICE,
        )
    return None


def _timeless(operation: Operation) -> tuple[str, Severity] | None:
    if operation.name != "applyInPandasWithState" or len(operation.arguments) < 5:
        return None
    timeout = operation.arguments[4]
    if timeout.pattern == "NoTimeout" or any(name.endswith("NoTimeout") for name in timeout.names):
        return "applyInPandasWithState with NoTimeout keeps every key.", Severity.ADVICE
    return None
