"""Makes the trigger for `--available-now`, `--once` and `--trigger`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from floodmark.errors import WrongUse

_UNITS = {
    "ms": "milliseconds",
    "s": "seconds",
    "sec": "seconds",
    "m": "minutes",
    "min": "minutes",
    "h": "hours",
    "d": "days",
}
_MILLISECONDS = {
    "milliseconds": 1,
    "seconds": 1000,
    "minutes": 60_000,
    "hours": 3_600_000,
    "days": 86_400_000,
}
_SHORT = re.compile(r"(?P<count>\d+)\s*(?P<unit>[a-z]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Trigger:
    """One of the triggers; without an option the writer's own trigger stays."""

    available_now: bool = False
    once: bool = False
    processing_time: str | None = None

    def on(self, writer: Any) -> Any:
        if self.available_now:
            return writer.trigger(availableNow=True)
        if self.once:
            return writer.trigger(once=True)
        return writer.trigger(processingTime=self.processing_time)


def trigger_of(available_now: bool, once: bool, every: str | None) -> Trigger | None:
    given = [
        name
        for name, value in (
            ("--available-now", available_now),
            ("--once", once),
            ("--trigger", every is not None),
        )
        if value
    ]
    if len(given) > 1:
        raise WrongUse(f"{' and '.join(given)} exclude each other", do="Give one of them.")
    if not given:
        return None
    return Trigger(available_now, once, None if every is None else interval(every))


def interval(text: str, option: str = "--trigger") -> str:
    """Return `10s`, `500ms`, `2 minutes` as Spark reads it."""
    match = _SHORT.fullmatch(text.strip())
    unit = _UNITS.get(match["unit"].lower(), match["unit"].lower()) if match else ""
    whole = unit if unit.endswith("s") else unit + "s"
    if match is None or whole not in _UNITS.values():
        raise WrongUse(
            f"{option} {text}: not a duration",
            do="Write a number and a unit: 500ms, 10s, 5min, 1h.",
        )
    return f"{match['count']} {whole}"


def milliseconds(text: str, option: str) -> int:
    """Return `500ms`, `10s`, `2 minutes` as a number of milliseconds."""
    count, _, unit = interval(text, option).partition(" ")
    return int(count) * _MILLISECONDS[unit]
