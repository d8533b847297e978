"""Says which packages of the `state` extra are missing; imports none of them."""

from __future__ import annotations

from importlib.util import find_spec

from floodmark.errors import ExtraMissing

_NEEDED = ("pyarrow", "numpy", "lz4", "rocksdict", "xxhash", "google_crc32c")


def missing_for_state() -> list[str]:
    """Return the packages of the `state` extra that are not installed."""
    return [name for name in _NEEDED if not find_spec(name)]


def require_state_extra() -> None:
    """Name all missing packages at once, before the first import fails."""
    missing = missing_for_state()
    if missing:
        raise ExtraMissing(
            f"looking inside the state needs {', '.join(missing)}",
            "These packages are heavy, so the base install leaves them out.",
            "Install them with: pip install 'floodmark[state]'",
        )
