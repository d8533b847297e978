"""Arbitrary state in Python: the functions that Spark's Python workers run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def count_by_customer(key: tuple[str], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    import pandas as pd  # type: ignore[import-untyped]

    seen = state.get[0] if state.exists else 0
    last = ""
    for frame in frames:
        seen += len(frame)
        last = str(frame["orderId"].iloc[-1])
    state.update((seen, last))
    yield pd.DataFrame({"customerId": [key[0]], "orders": [seen]})


def totals_processor() -> Any:
    """Made in a function: PySpark 3.5 has no StatefulProcessor to inherit from."""
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor

    class Totals(StatefulProcessor):  # type: ignore[misc]  # pyspark is untyped here
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "total DOUBLE")
            self.orders = handle.getListState("orders", "orderId STRING")
            self.by_minute = handle.getMapState("byMinute", "minute INT", "paid DOUBLE")

        def handleInputRows(  # noqa: N802  # Spark's name
            self, key: tuple[str], rows: Iterator[Any], timer_values: Any
        ) -> Iterator[Any]:
            total = self.total.get()[0] if self.total.exists() else 0.0
            for frame in rows:
                total += float(frame["amountPaid"].sum())
                for number, paid, at in zip(
                    frame["orderId"], frame["amountPaid"], frame["at"], strict=True
                ):
                    self.orders.appendValue((number,))
                    self.by_minute.updateValue((int(at.minute),), (float(paid),))
            self.total.update((total,))
            yield pd.DataFrame({"customerId": [key[0]], "total": [total]})

        def close(self) -> None:
            pass

    return Totals()
