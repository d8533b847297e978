"""Tests of streaming pipelines: feed rows, run, kill and start again, look at sinks and state.

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

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floodmark.api.drilling import Drill

__all__ = ["Stream", "drill"]


class Stream:
    """One query of `APP.py[:NAME]`, with a checkpoint and sinks of its own below `folder`.

    The application's own checkpoint and sinks are not touched. Rows that are fed stand in for
    what its source gives; `sources` is how many streams the code reads.
    """

    def __init__(
        self,
        app: str | Path,
        folder: str | Path,
        *,
        sources: int = 1,
        settings: Mapping[str, str] | None = None,
        arguments: Iterable[str] = (),
        query: str | int | None = None,
        py_files: str | Iterable[str] = (),
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        from floodmark.api.arguments import script_options
        from floodmark.engine.drill import stream

        self._stream = stream.Stream(
            str(app),
            Path(folder),
            sources=sources,
            settings=settings,
            conf={key: str(value) for key, value in (conf or {}).items()},
            script=script_options(arguments, query, py_files, None),
        )

    @property
    def checkpoint(self) -> str:
        """Where its checkpoint is, for every other function of floodmark."""
        return self._stream.checkpoint

    def feed(self, rows: Iterable[Mapping[str, Any] | str], source: int = 0) -> None:
        """One batch more: rows by column name, or lines as they are (Kafka's values, text)."""
        self._stream.feed(rows, source)

    def run(self) -> None:
        """Starts the driver, and waits until it has read all that was fed."""
        self._stream.run()

    def kill(self, at: str = "after-sink") -> Any:
        """Starts the driver, and kills it at this point of its next batch.

        Points: after-offset, during-state, during-sink, after-sink, after-commit. The result has
        the `point` that was hit, and the `batch` that runs again.
        """
        return self._stream.kill(at)

    def rows(self, sink: str | None = None) -> list[dict[str, Any]]:
        """What the sink holds after the last `run`; of several, the one whose place ends so."""
        return self._stream.rows(sink)

    def state(self, operator: int = 0, store: str = "default") -> Any:
        """The state as the last committed batch left it: a StateView, with lookup() and rows()."""
        from floodmark import api

        return api.read_state(self.checkpoint, operator=operator, store=store)

    def close(self) -> None:
        self._stream.close()


def drill(app: str | Path, **options: Any) -> Drill:
    """As `floodmark.drill`; a pipeline that does not survive has `survived` False."""
    from floodmark import api

    return api.drill(str(app), **options)
