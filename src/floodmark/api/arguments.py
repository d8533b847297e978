"""Checks and converts arguments that several verbs take."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.errors import NotACheckpoint, WrongUse

Storage = Mapping[str, Any]


def missing_for_state() -> list[str]:
    """Which packages of the `state` extra are not installed."""
    from importlib.util import find_spec

    return [
        name
        for name in ("pyarrow", "numpy", "lz4", "rocksdict", "xxhash", "google_crc32c")
        if not find_spec(name)
    ]


def require_state_extra() -> None:
    missing = missing_for_state()
    if missing:
        raise WrongUse(
            f"looking inside the state needs {', '.join(missing)}",
            "They are heavy, so the base install leaves them out.",
            'Install them with: pip install "floodmark[state]"',
        )


def structured(checkpoint: Checkpoint) -> Checkpoint:
    if checkpoint.kind is Kind.DSTREAMS:
        raise NotACheckpoint(
            f"{checkpoint.path} is a DStreams checkpoint: it has no log of batches",
            "DStreams saves the whole application as one Java-serialised object.",
            "`floodmark inspect` shows what can be seen of it.",
        )
    return checkpoint


def milliseconds(at: datetime | str | None) -> int | None:
    if at is None:
        return None
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at.replace("Z", "+00:00"))
        except ValueError:
            raise WrongUse(
                f"{at!r} is not a time",
                do="Write it as 2026-11-15T10:00:00Z; without a zone it is your local time.",
            ) from None
    try:
        return round(at.timestamp() * 1000)  # without a zone: the local one
    except (ValueError, OverflowError, OSError):
        # Local time cannot be told near the calendar's ends, where the zone does not matter.
        return int(at.replace(tzinfo=timezone.utc).timestamp() * 1000)
