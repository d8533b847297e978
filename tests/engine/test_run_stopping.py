"""How a run ends before its stream does: Ctrl-C, a second signal, another run that took over."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from drivers import PATIENCE_SECONDS, Driver, begun, logged
from streams import put_orders

from floodmark.engine.run import signals

APP = """
import time
from floodmark import pipeline

SCHEMA = "customerId STRING, amountPaid DECIMAL(12, 2)"

@pipeline(checkpoint="ck", conf={"spark.ui.enabled": False})
def sales(spark, start, *, slow: float = 0.0):
    reader = spark.readStream.schema(SCHEMA).option("header", True)
    orders = reader.option("maxFilesPerTrigger", 1).csv("orders")

    def write(rows, batch):
        with open("begun", "a") as file:
            file.write(f"{batch} ")
        time.sleep(slow)

    return orders.writeStream.foreachBatch(write)
"""
RUN = ("run", "app.py", "--master", "local[1]", "--trigger", "100ms")
LONGER_THAN_ANY_TEST = "slow=9999"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    for number in range(3):
        put_orders(tmp_path / "orders", f"{number}", ("c1", "1.50"))
    return tmp_path


def ended(driver: Driver) -> tuple[int, str]:
    said, _ = driver.process.communicate(timeout=PATIENCE_SECONDS)
    return driver.process.returncode, said


@pytest.mark.spark
def test_ctrl_c_finishes_the_batch_and_a_second_signal_does_not_wait_for_it(
    place: Path, drivers: list[Driver]
) -> None:
    patient = Driver(*RUN, "--set", "slow=2", cwd=place)
    drivers.append(patient)
    patient.until(lambda: begun(place, 0))
    os.killpg(patient.process.pid, signal.SIGINT)  # as a terminal does: to the JVM as well
    status, said = ended(patient)
    assert status == 0, said
    assert "finishing the running batch" in said
    assert "Traceback" not in said
    done = logged(place, "commits")
    assert done == logged(place, "offsets") != []

    hurried = Driver(*RUN, "--set", LONGER_THAN_ANY_TEST, cwd=place)
    drivers.append(hurried)
    hurried.until(lambda: begun(place, done[-1] + 1))
    hurried.process.send_signal(signal.SIGTERM)
    hurried.process.send_signal(signal.SIGINT)
    status, said = ended(hurried)
    assert status == 0, said
    assert "Traceback" not in said
    assert logged(place, "commits") == done, "the batch was not waited for"
    assert logged(place, "offsets") == [*done, done[-1] + 1], "the next start runs it again"
    assert not (place / "ck/_floodmark/lease.json").exists()


@pytest.mark.spark
def test_a_run_whose_checkpoint_another_has_taken_over_stops(
    place: Path, drivers: list[Driver]
) -> None:
    driver = Driver(*RUN, cwd=place)
    drivers.append(driver)
    lease = place / "ck/_floodmark/lease.json"
    driver.until(lambda: begun(place, 2) and lease.exists())
    other = {**json.loads(lease.read_text()), "run": "another-run"}
    lease.write_text(json.dumps(other))
    status, said = ended(driver)
    assert status == 5, said
    assert "another run has taken over" in said
    assert "Leave the other run alone" in said
    assert json.loads(lease.read_text())["run"] == "another-run", "the other's lease is its own"


def stopping(stuck: threading.Event) -> signals.StopSignals:
    stop = signals.StopSignals()
    stop.when_stuck = stuck.set
    return stop


def test_a_run_that_no_signal_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that stands still answers no call: it is ended, and the call fails."""
    monkeypatch.setattr(signals, "STUCK_AFTER_SECONDS", 0.1)
    stuck = threading.Event()
    with stopping(stuck).listening():
        os.kill(os.getpid(), signal.SIGTERM)
        assert not stuck.wait(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stuck.wait(300)


def test_a_run_that_ends_in_time_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "STUCK_AFTER_SECONDS", 2)
    stuck = threading.Event()
    with stopping(stuck).listening():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert not stuck.wait(2.5)
