"""What the mutated queries write, kept by batch; one query runs at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

GATHERED: dict[int, list[str]] = {}


def gather(frame: Any, batch: int) -> None:
    GATHERED[batch] = [repr(row) for row in frame.collect()]


def rows_since(batch: int) -> tuple[str, ...]:
    """The rows of this batch and of later ones, in an order that no partition decides."""
    return tuple(sorted(row for number in GATHERED if number >= batch for row in GATHERED[number]))


def written(folder: Path) -> dict[str, tuple[str, ...]]:
    """Of each data file of a file sink, its rows, with the partition that it lies in."""
    return {
        str(path): tuple(f"{path.parent.name}: {row}" for row in path.read_text().splitlines())
        for path in folder.rglob("part-*.json")
    }
