"""`serve` in a real Chromium beside a real pipeline on a real Kafka."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from drivers import Driver

import floodmark
from browsing import chromium
from served import Server, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from services.kafka import KafkaServer

pytestmark = [pytest.mark.spark, pytest.mark.services]
SOON = 120_000
APP = """
import os, time
from floodmark import pipeline

@pipeline(checkpoint="data/orders", conf={"spark.ui.enabled": False})
def orders(spark, start, *, servers: str, topic: str):
    records = (
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic).option("startingOffsets", "earliest").load()
    )

    def write(rows, batch):
        rows.count()
        deadline = time.monotonic() + 300
        while os.path.exists("hold") and time.monotonic() < deadline:
            time.sleep(0.05)

    return records.writeStream.foreachBatch(write)
"""


def behind(server: Server, records: int) -> None:
    """Waits until the page's server says so."""
    server.wait_for(lambda cards: cards["orders"]["lag"]["records"] == records)


def test_lag_rises_and_falls_and_a_killed_batch_is_in_flight(
    kafka: KafkaServer, tmp_path: Path, drivers: list[Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floodmark.api.serving.LAG_EVERY", 0.5)
    topic = kafka.create_topic("orders", partitions=2)
    kafka.produce(topic, [str(number) for number in range(40)])
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "data").mkdir()
    run = ("run", "app.py", "--master", "local[1]", "--trigger", "100ms", "--set")
    run += (f"servers={kafka.bootstrap}", "--set", f"topic={topic}")

    def started() -> Driver:
        driver = Driver(*run, cwd=tmp_path)
        drivers.append(driver)
        return driver

    checkpoint = tmp_path / "data" / "orders"
    driver = started()
    with (
        serving(tmp_path / "data", bootstrap_servers=kafka.bootstrap) as server,
        chromium() as browser,
    ):
        page = browser.new_page()
        page.set_default_timeout(SOON)
        server.wait_for(lambda cards: "orders" in cards)
        page.goto(server.url)
        page.get_by_role("link", name="orders", exact=True).click()
        driver.until(lambda: (checkpoint / "commits" / "0").exists())
        behind(server, 0)
        assert fact(page, "Records behind", "0")

        # The batch that holds is killed: planned, and never committed.
        (tmp_path / "hold").touch()
        kafka.produce(topic, ["a"] * 6)
        driver.until(lambda: (checkpoint / "offsets" / "1").exists())
        os.killpg(driver.process.pid, signal.SIGKILL)
        driver.kill()
        page.locator(".step[data-state=now]").wait_for()
        page.get_by_text("1 in flight").first.wait_for()
        assert "runs batch 1 again" in page.locator("#restart-words").inner_text()
        hollow = page.evaluate("document.getElementById('batch-chart').data[1].x.length")
        assert hollow == 1

        # Nobody reads: the lag is what the batch in flight reads, and what comes after it.
        behind(server, 6)
        kafka.produce(topic, ["b"] * 9)
        behind(server, 15)
        assert fact(page, "Records behind", "15")
        answer = floodmark.lag(str(checkpoint), bootstrap_servers=kafka.bootstrap)
        assert answer.sources[0].behind.records == 15
        ends = sum(kafka.end_offsets(topic).values())
        assert ends - 40 == 15, "as the broker says"

        # It goes on, and the lag falls.
        (tmp_path / "hold").unlink()
        again = started()
        again.until(lambda: (checkpoint / "commits" / "1").exists())
        behind(server, 0)
        assert fact(page, "Records behind", "0")
        page.locator(".step[data-state=done]").nth(2).wait_for()
        again.until(lambda: len(lines(checkpoint)) >= 2)
        page.get_by_text("started with Spark").first.wait_for()
        durations_are_sparks_own(page, checkpoint)


def fact(page: Page, name: str, value: str) -> bool:
    """The page shows it, without being loaded again."""
    page.locator(f".fact:has(dt:text-is('{name}')) .value:text-is('{value}')").wait_for()
    return True


def lines(checkpoint: Path) -> list[dict[str, object]]:
    path = checkpoint / "_floodmark" / "progress.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def durations_are_sparks_own(page: Page, checkpoint: Path) -> None:
    """The lines are what Spark's `recentProgress` said when the batch ended."""
    told = {line["batch"]: line["durations_ms"]["triggerExecution"] for line in lines(checkpoint)}  # type: ignore[index]
    page.get_by_text("The same as a table").click()
    for batch, ms in told.items():
        row = page.locator(f"#batch-table tr[data-batch='{batch}']")
        row.get_by_text("progress").wait_for()
        assert row.locator("td").nth(3).inner_text() == f"{ms:,} ms"
