"""Writes sales files; the same numbers always give the same files."""

from __future__ import annotations

import random
import re
from pathlib import Path

HEADER = "transactionId,customerId,itemId,amountPaid\n"
CUSTOMERS = 40
ROWS = 5000


def write_orders(folder: Path, numbers: range) -> int:
    """Write one file for each number; return the number of rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        dice = random.Random(number)  # nosec B311 # sample orders, the same each time
        rows = "".join(
            f"t{number:03d}-{row},c{dice.randrange(CUSTOMERS):02d},"
            f"i{dice.randrange(500)},{dice.randrange(100, 50000) / 100:.2f}\n"
            for row in range(ROWS)
        )
        _hidden(folder, number).write_text(HEADER + rows)
    # A stream must never see half a file: all are renamed into place, at almost the same time.
    for number in numbers:
        _hidden(folder, number).rename(folder / f"sales-{number:03d}.csv")
    return len(numbers) * ROWS


def count_orders(location: str) -> int:
    """Return the number of rows of one file, by its path or `file:` URL."""
    path = re.sub("^file:/+", "/", location)
    return len(Path(path).read_text().splitlines()) - 1


def _hidden(folder: Path, number: int) -> Path:
    return folder / f".sales-{number:03d}.csv.tmp"
