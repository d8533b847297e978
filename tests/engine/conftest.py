"""What the engine's tests begin with: orders, a session, drivers that do not outlive the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drivers import Driver
from streams import put_orders


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    put_orders(tmp_path / "orders", "a", ("c1", "1.00"), ("c2", "2.00"))
    return tmp_path / "orders"


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    """Settings that a test makes end with it, and so do its queries."""
    made = spark.newSession()
    yield made
    for query in made.streams.active:
        query.stop()


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    """Whatever a test puts here is killed at its end."""
    begun: list[Driver] = []
    yield begun
    for driver in begun:
        driver.kill()
