"""`serve` over folders that a stranger made: odd names, links, numbers, and files that vanish."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import samples
from floodmark.connectors.behind import Behind, Lag, PartLag, SourceLag
from floodmark.rules.finding import Finding, Severity
from floodmark.storage.files import Folder, open_files
from floodmark.storage.local import LocalFiles
from floodmark.web.checkpoint_page import shown_finding
from floodmark.web.fleet import Fleet
from floodmark.web.history import History
from floodmark.web.one_checkpoint import WatchOptions
from floodmark.web.workers import Workers
from patience import LIMIT, wait_until
from served import serving


def test_links_and_odd_names_are_not_followed_and_said(tmp_path: Path) -> None:
    """A checkpoint that is not shown must not be taken for one that is not there."""
    root = tmp_path / "data"
    samples.write(root / "good", samples.sales(4))
    samples.write(tmp_path / "outside" / "cp", samples.sales(4))
    (root / "linked").symlink_to(tmp_path / "outside")
    samples.write(root / "new\nline", samples.sales(4))
    with serving(root) as server:
        assert set(server.examined()) == {"good"}
        [told] = server.get("/api/fleet").json["roots"]
        assert told["passed_over"] == 2
        assert told["passed_over_first"].startswith(("linked: a link", "'new"))


def test_what_is_found_is_shown_while_the_rest_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.write(tmp_path / "a", samples.sales(4))
    samples.write(tmp_path / "slow" / "b", samples.sales(4))
    go_on = threading.Event()
    plain = LocalFiles.level

    def level(self: LocalFiles, folder: str = "") -> Folder:
        if folder == "slow":
            go_on.wait(LIMIT)
        return plain(self, folder)

    monkeypatch.setattr(LocalFiles, "level", level)
    with serving(tmp_path) as server:
        assert set(server.examined()) == {"a"}
        go_on.set()
        server.examined(2)


def test_a_position_that_no_kafka_has_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No database holds such a number; the other streams are asked all the same."""
    for name in ("evil-1", "evil-2", "good"):
        samples.write(tmp_path / name, samples.sales(4))
    monkeypatch.setattr("floodmark.api.serving.LAG_EVERY", 0.2)
    answers = iter(range(10_000))

    def ask(path: str, **_: object) -> Lag:
        at = 10**30 if "evil" in path else 5
        part = PartLag("orders/0", at, 10**30 if "evil" in path else 9, 0, 4)
        behind = Behind(next(answers))
        now_ms = int(time.time() * 1000)
        return Lag(path, 3, None, now_ms, (SourceLag("0", "kafka", behind, (part,)),))

    monkeypatch.setattr("floodmark.api.lagging.lag", ask)
    with serving(tmp_path, bootstrap_servers="127.0.0.1:1") as server:
        server.wait_for(
            lambda cards: len(cards) == 3 and (cards["good"]["lag"]["records"] or 0) > 12
        )
        assert server.get("/api/health").json["fault"] is None


def test_a_job_that_fails_does_not_end_its_thread() -> None:
    failed: list[Exception] = []
    done = threading.Event()
    workers = Workers("test", 1, 10.0, failed.append)
    workers.add(lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    workers.add(done.set)
    assert done.wait(LIMIT)
    workers.close()
    assert [type(error) for error in failed] == [ZeroDivisionError]


def test_a_file_that_vanishes_while_a_stream_stands_still_is_found(tmp_path: Path) -> None:
    folder = samples.write(tmp_path / "sales", samples.sales(6, in_flight=False))
    options = WatchOptions(0.2, examine_every=0.2)
    fleet = Fleet([open_files(str(tmp_path))], options, History(None, 1000))
    fleet.start()
    try:
        wait_until(lambda: [card for card in fleet.cards()[0] if card.findings])
        [card] = fleet.cards()[0]
        assert card.findings is not None
        assert card.findings.error == 0
        (folder / "state" / "0" / "0" / "3.delta").unlink()
        wait_until(lambda: (found := fleet.cards()[0][0].findings) and found.error)
    finally:
        fleet.close()


def test_a_long_complaint_of_a_driver_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.write(tmp_path / "sales", samples.sales(4))

    def stamps(self: LocalFiles, *folders: str) -> tuple[int | None, ...]:
        raise RuntimeError("<html>" * 100_000)

    monkeypatch.setattr(LocalFiles, "folder_stamps", stamps)
    with serving(tmp_path) as server:
        cards = server.wait_for(lambda cards: cards and cards["sales"]["problem"])
        assert len(cards["sales"]["problem"]) < 600


def test_a_source_of_another_kind_one_batch_before_has_a_page(tmp_path: Path) -> None:
    tree = samples.logs(range(2), range(2))
    tree["offsets/0"] = samples.offset_entry(0, "7")
    samples.write(tmp_path / "odd", tree)
    with serving(tmp_path) as server:
        [card] = server.examined().values()
        [source] = server.get(f"/api/checkpoints/{card['id']}").json["detail"]["sources"]
        assert [part["started"] for part in source["parts"]] == [None, None]


def test_findings_hide_secrets() -> None:
    secret = "s3cr3t-Pa55word-x9"
    words = f"It lies at hdfs://ann:{secret}@host/data"
    found = Finding(
        "FM155", "dstreams-moved", Severity.WARNING, "metadata", None, words, words, words, False
    )
    assert secret not in str(shown_finding(found))
