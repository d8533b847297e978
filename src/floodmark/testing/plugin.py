"""Provides pytest's two fixtures, and loads nothing of Spark before a test uses one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from floodmark.api.drilling import Drill
    from floodmark.testing import StreamUnderTest


@pytest.fixture
def floodmark_stream(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., StreamUnderTest]]:
    """Make a StreamUnderTest of an application: `floodmark_stream("orders.py")`."""
    from floodmark.testing import StreamUnderTest

    made: list[StreamUnderTest] = []

    def stream(app: str | Path, **options: Any) -> StreamUnderTest:
        made.append(StreamUnderTest(app, tmp_path_factory.mktemp("floodmark"), **options))
        return made[-1]

    yield stream
    for one in made:
        one.close()


@pytest.fixture
def floodmark_drill(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Drill]:
    """Drill an application: `floodmark_drill("orders.py", input="orders.jsonl")`."""

    def drill(app: str | Path, **options: Any) -> Drill:
        from floodmark import testing

        options.setdefault("scratch", str(tmp_path_factory.mktemp("floodmark-drill")))
        return testing.drill(str(app), **options)

    return drill
