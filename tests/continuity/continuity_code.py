"""Functions and processors of the scenarios; made by calls, so that workers need no import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Groups = Callable[[Any, Iterator[Any], Any], Iterator[Any]]


def total() -> Groups:
    """The state's one field is the sum of v."""

    def run(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        before = state.get[0] if state.exists else 0
        now = before + int(sum(frame["v"].sum() for frame in frames))
        state.update((now,))
        yield pd.DataFrame({"k": [key[0]], "total": [now]})

    return run


def total_and_last() -> Groups:
    """A second field, null where it is not known yet; what is emitted does not depend on it."""

    def run(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        before = state.get[0] if state.exists else 0
        now, last = before, 0
        for frame in frames:
            now += int(frame["v"].sum())
            last = int(frame["v"].iloc[-1])
        state.update((now, last))
        yield pd.DataFrame({"k": [key[0]], "total": [now]})

    return run


def total_from() -> Groups:
    """The sum of v and of what the second field says."""

    def run(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        before, base = state.get if state.exists else (0, 0)
        now = before + int(sum(frame["v"].sum() for frame in frames))
        state.update((now, base))
        yield pd.DataFrame({"k": [key[0]], "total": [now + base]})

    return run


def processor(name: str) -> Any:
    """A transformWithState processor: they differ in the variables that they keep."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Summing(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            kind = "total int" if name == "TotalInt" else "total long"
            if name == "TotalWithLast":
                kind += ", last long"
            self.total = handle.getValueState("total", kind)
            self.count = self.seen = self.by_city = None
            if name == "TotalAndCount":
                self.count = handle.getValueState("count", "n long")
            if name in ("Collections", "FewerCollections"):
                self.seen = handle.getListState("seen", "v long")
                self.by_city = handle.getMapState("byCity", "city string", "n long")
            if name == "Collections":
                self.count = handle.getValueState("count", "n long")

        def handleInputRows(self, key: Any, rows: Any, timer: Any) -> Iterator[Any]:  # noqa: N802
            import pandas as pd

            found = [
                (int(v), str(city))
                for chunk in rows
                for v, city in zip(chunk["v"], chunk["city"], strict=True)
            ]
            before = int(self.total.get()[0]) if self.total.exists() else 0
            now = before + sum(v for v, _ in found)
            self.total.update((now, found[-1][0]) if name == "TotalWithLast" else (now,))
            if self.count is not None:
                self.count.update((len(found),))
            shown = now
            if self.seen is not None:
                for v, city in found:
                    self.seen.appendValue((v,))
                    many = (
                        self.by_city.getValue((city,))
                        if self.by_city.containsKey((city,))
                        else (0,)
                    )
                    self.by_city.updateValue((city,), (int(many[0]) + 1,))
                shown = sum(int(v) for (v,) in self.seen.get()) * 1000
                shown += sum(int(n) for (n,) in self.by_city.values())
            yield pd.DataFrame({"k": [key[0]], "total": [shown]})

        def close(self) -> None:
            pass

    return Summing()
