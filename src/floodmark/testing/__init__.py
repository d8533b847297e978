"""Tests streaming pipelines: feeds rows, runs, kills and restarts, reads sinks and state.

    def test_orders(floodmark_stream):
        stream = floodmark_stream("orders.py")
        stream.feed([{"id": 1, "amount": 5}])
        stream.kill(at="after-sink")
        stream.run()
        assert stream.rows() == [{"id": 1, "amount": 5}]

    def test_orders_survive(floodmark_drill):
        assert floodmark_drill("orders.py", input="tests/orders.jsonl").survived

The fixtures come with the package; pytest finds them by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floodmark.api.drilling import drill
    from floodmark.testing.stream import StreamUnderTest

__all__ = ["StreamUnderTest", "drill"]


def __getattr__(name: str) -> Any:
    """Import a name on its first use, as pytest loads this package in every run."""
    if name == "StreamUnderTest":
        from floodmark.testing.stream import StreamUnderTest

        return StreamUnderTest
    if name == "drill":
        from floodmark.api.drilling import drill

        return drill
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
