"""Computes how often a DStream's state is saved, and refuses other intervals. Pure."""

from __future__ import annotations

import re

from floodmark.errors import WrongUse

LEAST_MS = 10_000
FEWEST = 5
_TIME = re.compile(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*(ms|s|sec|seconds?|m|min|minutes?|h|hours?)\s*")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


def milliseconds_of(text: str | int | float, what: str) -> int:
    """Return `5s`, `500ms`, `2min` in ms; a bare number is seconds, as for StreamingContext."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        text = f"{text}s"
    found = _TIME.fullmatch(str(text))
    if found is None:
        raise WrongUse(f"{what} {text!r} is not a time", do="Write 500ms, 5s or 2min.")
    unit = "ms" if found[2] == "ms" else found[2][0]
    value = round(float(found[1]) * _UNITS[unit])
    if value < 1:
        raise WrongUse(f"{what} {text!r} is too short", do="Give 1ms or more.")
    return value


def state_interval(slide_ms: int, told_ms: int | None = None) -> int:
    """Return a multiple of the stream's own interval: 5 to 10 of them, and at least 10 seconds.

    The user's own interval stays unchanged, if Spark supports it.
    """
    if told_ms is not None:
        if told_ms % slide_ms or told_ms < slide_ms:
            near = max(round(told_ms / slide_ms), 1) * slide_ms
            raise WrongUse(
                f"save_state is {told_ms / 1000:g} s, which is not a multiple of "
                f"{slide_ms / 1000:g} s",
                "State is saved at the end of a batch; Spark refuses an interval between two.",
                f"Give {near / 1000:g}s, or leave it out: then it is "
                f"{state_interval(slide_ms) / 1000:g} s.",
            )
        return told_ms
    batches = max(FEWEST, -(-LEAST_MS // slide_ms))
    return slide_ms * batches
