"""What was seen outlives the logs; alerts are posted once."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import samples
from floodmark.fleet.alerts import Alert
from floodmark.fleet.retention import PartSample
from floodmark.web.history import BatchSample, History, Sample
from floodmark.web.notify import Notifier
from patience import wait_until
from served import serving

DAY = 86_400_000


def sample(at_ms: int, records: int = 5) -> Sample:
    return Sample(at_ms, 3, records, None, None, None, None)


def test_samples_come_back_and_grow_old(tmp_path: Path) -> None:
    now = 100 * DAY
    history = History(tmp_path / "h.sqlite", 14 * DAY)
    minute = [("a", sample(now - n * 60_000)) for n in range(60)]
    older = [("a", sample(now - 2 * DAY - n * 60_000)) for n in range(60)]
    oldest = [("a", sample(now - 15 * DAY))]
    history.add([*minute, *older, *oldest, ("b", sample(now, 9))])
    history.add_parts("a", [PartSample(now, "0", "orders/0", 5, 9, 1)])
    history.add_batches([("a", BatchSample(7, now))])
    history.prune(now)
    found = history.samples("a")
    assert len([one for one in found if one.at_ms > now - DAY]) == 60
    assert 5 <= len([one for one in found if one.at_ms < now - DAY]) <= 7
    assert min(one.at_ms for one in found) > now - 14 * DAY
    assert history.first_parts("a", 0) == [PartSample(now, "0", "orders/0", 5, 9, 1)]
    assert history.batches("a") == (BatchSample(7, now),)
    assert [one.records for one in history.samples("b")] == [9]
    history.close()
    again = History(tmp_path / "h.sqlite", 14 * DAY)
    assert again.samples("a") == found
    assert (tmp_path / "h.sqlite").stat().st_mode & 0o077 == 0
    again.close()


def test_a_history_of_many_streams_is_thinned_out_quickly(tmp_path: Path) -> None:
    """A day of a hundred streams; while it goes on, others are not held up."""
    history = History(tmp_path / "h.sqlite", 14 * DAY)
    now = 100 * DAY
    began = time.process_time()
    for number in range(100):
        times = range(now - 2 * DAY, now - DAY, 60_000)
        history.add((f"{number:04}", sample(at)) for at in times)
        history.add_batches((f"{number:04}", BatchSample(at // 60_000, at)) for at in times)
    added = time.process_time() - began
    history.prune(now)
    # By rows and not by streams times rows: that would be a hundred times as much.
    assert time.process_time() - began - added < 10 * added
    assert history.problem is None
    assert len(history.samples("0007")) == len(history.batches("0007")) == 144
    history.add([("0007", sample(now - DAY + 60_000)), ("0007", sample(now - DAY + 120_000))])
    history.prune(now + 3_600_000)
    assert len(history.samples("0007")) == 145
    history.close()


def test_batches_outlive_the_purge_of_the_logs(tmp_path: Path) -> None:
    folder = samples.write(tmp_path / "data" / "sales", samples.logs(range(6), range(6)))
    kept = str(tmp_path / "kept" / "history.sqlite")
    with serving(tmp_path / "data", history=kept) as server:
        server.examined()
    for batch in range(4):
        (folder / "offsets" / str(batch)).unlink()
        (folder / "commits" / str(batch)).unlink()
    with serving(tmp_path / "data", history=kept) as server:
        [card] = server.examined().values()
        base = f"/api/checkpoints/{card['id']}"
        assert [b["batch"] for b in server.get(base).json["detail"]["batches"]] == [4, 5]
        found = server.get(f"{base}/history?hours=9000").json
        assert [batch["batch"] for batch in found["batches"]] == [0, 4]  # one a minute
        assert found["samples"]


def test_a_history_of_the_version_before_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with sqlite3.connect(path) as old:
        old.execute(
            "CREATE TABLE batches (checkpoint TEXT NOT NULL, batch INTEGER NOT NULL, committed_ms "
            "INTEGER NOT NULL, PRIMARY KEY (checkpoint, batch)) WITHOUT ROWID"
        )
        old.execute("INSERT INTO batches VALUES ('a', 7, 1000)")
        old.execute("PRAGMA user_version=1")
    old.close()
    history = History(path, DAY)
    history.add_batches([("a", BatchSample(8, 5000, 2000))])
    assert history.batches("a") == (BatchSample(7, 1000, None), BatchSample(8, 5000, 2000))
    history.close()


@contextmanager
def receiver(status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    posted: list[Any] = []

    class Receive(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posted.append({**body, "login": self.headers["Authorization"]})
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receive) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook?token=s3cr3t-token-x", posted
        server.shutdown()


def test_an_alert_is_posted_once_and_again_when_it_is_over(tmp_path: Path) -> None:
    folder = samples.write(tmp_path / "sales", samples.logs(range(6), range(6)))
    whole = (folder / "offsets" / "5").read_bytes()
    (folder / "offsets" / "5").write_bytes(b"v1\n{")
    with receiver() as (url, posted), serving(tmp_path, notify=url) as server:
        server.examined()
        wait_until(lambda: posted)
        time.sleep(1.2)
        assert [(one["event"], one["name"]) for one in posted] == [("error-finding", "sales")]
        assert posted[0]["path"] == str(folder)
        assert "sales: error-finding" in posted[0]["text"]
        (folder / "offsets" / "5").write_bytes(whole)
        samples.write(folder, {"offsets/6": samples.offset_entry(6, samples.kafka_offset(6))})
        # It is examined again in five minutes; a server that starts anew examines at once.
    with receiver() as (url, posted), serving(tmp_path, notify=url) as server:
        server.examined()
        time.sleep(1.2)
        assert [one for one in posted if one["event"] == "error-finding"] == []


def test_a_stream_that_stalls_and_goes_on(tmp_path: Path) -> None:
    """Its last batch was planned long ago, by its own usual interval, and is not committed."""
    folder = samples.write(tmp_path / "sales", samples.sales(12))
    with receiver() as (url, posted), serving(tmp_path, notify=url):
        wait_until(lambda: posted)
        assert [(one["event"], one["name"]) for one in posted] == [("stalled", "sales")]
        assert "A batch is planned for" in posted[0]["words"]
        samples.write(folder, {"commits/11": samples.commit_entry()})
        wait_until(lambda: len(posted) > 1)
        assert posted[1]["event"] == "stalled-over"


def test_a_receiver_that_fails_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floodmark.web.notify._PAUSES", (0.1, 0.1))
    samples.write(tmp_path / "sales", {**samples.logs(range(3), range(3)), "offsets/2": b""})
    warned: list[str] = []
    with (
        receiver(500) as (url, posted),
        serving(tmp_path, notify=url, warn=warned.append) as server,
    ):
        server.examined()
        wait_until(lambda: warned)
        assert len(posted) == 3
        assert "did not accept an alert" in warned[0]
        assert "s3cr3t-token-x" not in warned[0]
        assert server.get("/api/health").json["fault"] is None
    with receiver(302) as (url, posted), serving(tmp_path, notify=url, warn=warned.append):
        wait_until(lambda: len(warned) > 1)


def test_a_receiver_that_wants_a_login_gets_it(tmp_path: Path) -> None:
    samples.write(tmp_path / "sales", samples.sales(12))
    with receiver() as (url, posted):
        named = url.replace("//", "//ann:s3cr3t%40pw@")
        with serving(tmp_path, notify=named):
            wait_until(lambda: posted)
    assert posted[0]["login"] == "Basic " + b64encode(b"ann:s3cr3t@pw").decode()


def test_a_receiver_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """More alerts wait than there is room for, and none is taken."""
    monkeypatch.setattr("floodmark.web.notify._SECONDS", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        warned: list[str] = []
        notifier = Notifier(f"http://127.0.0.1:{silent.getsockname()[1]}/", warned.append)
        for number in range(1100):
            notifier.post(Alert("stalled", "id", "name", "/path", "words", number))
        ended = threading.Thread(target=notifier.close, daemon=True)
        ended.start()
        ended.join(300)
        assert not ended.is_alive()
        assert "one was dropped" in warned[0]
