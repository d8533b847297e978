"""DStreams that are killed with SIGKILL lose nothing and count nothing twice."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path

import pytest

import floodmark
from chaos.dstream_campaign import Campaign
from engine.drivers import Driver
from engine.drivers import floodmark as command
from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint


@pytest.mark.spark
def test_one_kill(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "one", seed=19)
    campaign.run(kills=1)
    assert campaign.files > 3
    assert sum(campaign.hit.values()) == 1


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_kill_while_it_catches_up_keeps_what_was_done(tmp_path: Path) -> None:
    """Spark alone goes back to a file from before, whose saved RDDs it may have removed."""
    campaign = Campaign(tmp_path / "behind", seed=23, batch_ms=400)
    process = campaign.start()
    campaign.until_batches(process, 2)
    campaign.kill(process)
    time.sleep(10)  # batches to catch up with
    behind = campaign.inside()
    process = campaign.start()
    # The newest file is named after a batch of now, and old ones still wait to be run.
    campaign.until(process, lambda: campaign.newest() > max(behind.checkpoint_times) + 10_000)
    campaign.kill(process)
    before = campaign.inside()
    assert len(before.pending_times or ()) > 10
    done = campaign.batches()
    process = campaign.start()
    campaign.until_batches(process, done + 3)
    # Spark notes what is done late while it plans: the file has to come past what was pending.
    oldest = min(before.pending_times or ())
    campaign.until(process, lambda: min(campaign.inside().pending_times or (0,)) > oldest)
    campaign.kill(process)
    after = campaign.inside()
    assert after.gone_rdds == ()
    # The file's own time may go back: it is that of the old batch which has just ended.
    assert str(after.restart_file) >= str(before.restart_file)
    assert min(after.pending_times or ()) > min(before.pending_times or ())
    process = campaign.start()
    try:
        campaign.finish(process)
    finally:
        campaign.kill(process)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_finished_batches_are_not_run_again_from_a_state_that_is_gone(tmp_path: Path) -> None:
    """While Spark plans missed batches, slowly, it notes late which of them are finished."""
    campaign = Campaign(tmp_path / "late", seed=29, batch_ms=400)
    for number in range(6_000):  # each batch is planned by a list of all
        old = campaign.root / "in" / f"old-{number:04}.csv"
        old.write_text("")
        os.utime(old, (0, 0))
    process = campaign.start()
    campaign.until_batches(process, 2)
    campaign.kill(process)
    time.sleep(20)  # batches to catch up with
    told = campaign.batches()
    process = campaign.start()
    campaign.until(process, lambda: _late_by(campaign.inside()) > 10 * 400)
    # Spark's start comes back only when all are planned: meanwhile those that are done are told.
    campaign.until_batches(process, told + 1)
    campaign.kill(process)
    before = campaign.inside()
    assert _late_by(before) > 10 * 400
    pending = set(before.pending_times or ())
    finished = len(campaign.put_out())
    process = campaign.start()
    campaign.until(
        process, lambda: any(one not in pending for one in campaign.put_out()[finished:])
    )
    campaign.kill(process)
    again = [one for one in campaign.put_out()[finished:] if one not in pending]
    assert min(again) >= (before.planned_time_ms or 0)


def _late_by(inside: DStreamsCheckpoint) -> int:
    return (inside.planned_time_ms or 0) - (inside.checkpoint_time_ms or 0)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [2026, 2027])
def test_ten_kills(seed: int, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "ten", seed)
    campaign.run(kills=10)
    print(
        f"seed {seed}: 10 kills, {campaign.lived} s after the first batch of a start, "
        f"{dict(campaign.hit)}, {campaign.files} files, {campaign.oracle}"
    )


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_what_a_receiver_has_logged_survives_kills(tmp_path: Path) -> None:
    """A socket cannot send again: what was received is in the write-ahead log alone."""
    with Sender() as sender:
        (tmp_path / "app.py").write_text(RECEIVING.format(root=tmp_path, port=sender.port))
        sent = 0
        begun: list[Driver] = []
        totals = tmp_path / "totals.json"

        def held() -> dict[str, int]:
            return json.loads(totals.read_text()) if totals.exists() else {}

        def send(number: int) -> None:
            nonlocal sent
            sender.send([f"{'ab'[one % 2]},{one}" for one in range(sent, sent + number)])
            sent += number

        def holds_all() -> bool:
            sums = {"a": sum(range(0, sent, 2)), "b": sum(range(1, sent, 2))}
            return not sent or held() == {**sums, "n": sent}

        try:
            for kill in range(3):
                driver = Driver("run", "app.py", "--conf", "spark.ui.enabled=false", cwd=tmp_path)
                begun.append(driver)
                driver.until(sender.is_connected)
                # All that was sent before the kill comes back, and none of it twice.
                driver.until(holds_all)
                send(40)
                driver.until(holds_all)
                send(60)
                # A block is logged after 200 ms; its batch, of 2 s, is not done yet.
                time.sleep(1)
                pending = not holds_all()
                driver.kill()
                sender.forget()
                print(
                    f"kill {kill}: {'in the log alone' if pending else 'in a batch that was done'}"
                )
            received = floodmark.inspect(str(tmp_path / "cp")).dstreams
            assert received is not None
            assert {one.stream for one in received.received} == {None, 0}
            last = Driver("run", "app.py", "--conf", "spark.ui.enabled=false", cwd=tmp_path)
            begun.append(last)
            last.until(holds_all)
            assert last.terminate()[0] == 0
            # What is in the log is read by the old code alone: to begin anew is refused.
            app = (tmp_path / "app.py").read_text()
            (tmp_path / "app.py").write_text(app.replace("return old", "return 1 * old"))
            done = command("run", "app.py", "--fresh-with-state", cwd=tmp_path)
            assert done.returncode == 4, done.stdout + done.stderr
            assert "cannot be carried" in done.stdout + done.stderr
        finally:
            for driver in begun:
                driver.kill()


RECEIVING = """
import json, os
from floodmark import dstream

def update(found, old):
    old = (old or 0) + sum(found)
    return old

def show(time, totals):
    found = dict(totals.collect())
    with open("{root}/totals.tmp", "w") as out:
        json.dump(found, out)
    os.replace("{root}/totals.tmp", "{root}/totals.json")

@dstream(checkpoint="{root}/cp", batch="2s", save_state="4s")
def received(ssc):
    rows = ssc.socketTextStream("127.0.0.1", {port}).map(lambda line: line.split(","))
    pairs = rows.flatMap(lambda row: [(row[0], int(row[1])), ("n", 1)])
    pairs.updateStateByKey(update, 2).foreachRDD(show)
"""


class Sender:
    """A server of lines, to one client at a time; it keeps nothing."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(0.2)
        self.port = self._server.getsockname()[1]
        self._client: socket.socket | None = None

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()
        self._server.close()

    def is_connected(self) -> bool:
        if self._client is None:
            with contextlib.suppress(TimeoutError):
                self._client, _ = self._server.accept()
        return self._client is not None

    def send(self, lines: list[str]) -> None:
        assert self._client is not None
        self._client.sendall("".join(f"{line}\n" for line in lines).encode())

    def forget(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
