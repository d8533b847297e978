"""Changed code is judged before it starts; unchanged code is not even drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions
from streams import put_orders, read_orders, run

from floodmark import errors
from floodmark.engine.code import check
from floodmark.engine.start.launch import start
from floodmark.errors import Refused

pytestmark = pytest.mark.spark


def totals(session: Any, orders: Path, *aggregates: str) -> Any:
    grouped = read_orders(session, orders).groupBy("customerId")
    rows = grouped.agg(*(functions.expr(one) for one in aggregates or ("sum(amountPaid)",)))
    return rows.writeStream.outputMode("update").format("noop").trigger(availableNow=True)


def test_unchanged_code_is_not_drawn(
    session: Any, orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*_: Any) -> None:
        raise AssertionError("the code was drawn")

    monkeypatch.setattr(check, "outline", drawn)
    run(totals(session, orders), tmp_path / "ck")
    put_orders(orders, "b", ("c1", "3.00"))
    run(totals(session, orders), tmp_path / "ck")


def test_what_spark_would_refuse_and_what_it_would_not_say(
    session: Any, orders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "ck"
    run(totals(session, orders), checkpoint)
    put_orders(orders, "b", ("c1", "3.00"))
    notes = sorted(path.name for path in (checkpoint / "_floodmark/starts").iterdir())
    with pytest.raises(Refused, match="FM322") as refused:
        start(totals(session, orders, "sum(amountPaid)", "count(*)"), checkpoint)
    assert "--allow aggregates-changed" in refused.value.do
    assert "migrate" in refused.value.do
    with pytest.raises(Refused, match="FM323"):  # the same types: Spark would go on from a sum
        start(totals(session, orders, "sum(-amountPaid)"), checkpoint)
    # Nothing was started, so nothing was noted.
    assert sorted(path.name for path in (checkpoint / "_floodmark/starts").iterdir()) == notes
    run(totals(session, orders, "sum(-amountPaid)"), checkpoint, allow=["aggregates-mean-another"])
    assert "allowed: The aggregates are sum(unary_minus(amountPaid))" in capsys.readouterr().err


def test_a_checkpoint_of_plain_spark_is_judged_too(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "ck"
    query = totals(session, orders).option("checkpointLocation", str(checkpoint)).start()
    assert query.awaitTermination(300)
    put_orders(orders, "b", ("c1", "3.00"))
    rows = read_orders(session, orders).groupBy("customerId", "amountPaid").count()
    with pytest.raises(Refused, match="FM321"):
        start(rows.writeStream.outputMode("update").format("noop"), checkpoint)
    run(totals(session, orders), checkpoint)


def test_without_the_state_extra_all_but_the_windows_is_compared(
    session: Any,
    orders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    checkpoint = tmp_path / "ck"

    def hourly(*aggregates: str) -> Any:
        rows = read_orders(session, orders).selectExpr("*", "timestamp'2026-01-01' AS at")
        grouped = rows.withWatermark("at", "1 hour").groupBy(functions.window("at", "1 hour"))
        counted = grouped.agg(*(functions.expr(one) for one in aggregates))
        return counted.writeStream.outputMode("update").format("noop").trigger(availableNow=True)

    query = hourly("count(*)").option("checkpointLocation", str(checkpoint)).start()
    assert query.awaitTermination(300)
    put_orders(orders, "b", ("c1", "3.00"))
    monkeypatch.setattr(errors, "_OF_STATE", ("no_such_package",))
    with pytest.raises(Refused, match="FM322"):
        start(hourly("count(*)", "sum(amountPaid)"), checkpoint)
    run(hourly("count(*)"), checkpoint)
    assert "the windows in the state were not compared" in capsys.readouterr().err


def test_a_watermark_and_a_legacy_setting_are_looked_at_too(
    session: Any, orders: Path, tmp_path: Path
) -> None:
    """They change no key and no aggregate, and decide which rows count, and as what."""
    checkpoint = tmp_path / "ck"

    def hours(marked: str) -> Any:
        rows = read_orders(session, orders).selectExpr(
            "customerId", "timestamp'2026-01-01' AS at", "timestamp'2026-01-02' AS seen"
        )
        rows = rows.withWatermark(marked, "1 hour").dropDuplicates(["customerId", "at", "seen"])
        return rows.writeStream.format("noop").trigger(availableNow=True)

    run(hours("at"), checkpoint)
    with pytest.raises(Refused, match="FM326"):
        start(hours("seen"), checkpoint)
    session.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    with pytest.raises(Refused, match="FM355"):
        start(hours("at"), checkpoint)
