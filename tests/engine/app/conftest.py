"""Scripts whose threads outlive them leave guards in place: not beyond the test."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

LIMIT_SECONDS = 120


@pytest.fixture(autouse=True)
def nothing_left_in_place() -> Iterator[None]:
    yield
    from floodmark.engine.app import dry_run

    end = time.monotonic() + LIMIT_SECONDS
    dry_run.release_left()
    while dry_run._left and time.monotonic() < end:
        time.sleep(0.1)
        dry_run.release_left()
    assert not dry_run._left, "a script's thread does not end"
