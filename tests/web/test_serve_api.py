"""What `serve` answers: facts as JSON, whatever the checkpoints and the storage are like."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import floodmark
import samples
from floodmark.storage.files import open_files
from floodmark.storage.local import LocalFiles
from served import Server, serving

SCRIPT = "<script>alert(1)</script>"
GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    samples.write(tmp_path / "data" / "sales", samples.sales(12))
    samples.write(tmp_path / "data" / "files", samples.file_stream())
    return tmp_path / "data"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """For the tests that change nothing."""
    root = tmp_path_factory.mktemp("shared")
    samples.write(root / "sales", samples.sales(12))
    samples.write(root / "files", samples.file_stream())
    with serving(root) as server:
        server.examined(2)
        yield server


def detail(server: Server, name: str = "sales") -> Any:
    card = server.cards()[name]
    return server.get(f"/api/checkpoints/{card['id']}").json["detail"]


def test_the_fleet_has_every_checkpoint(shared: Server) -> None:
    cards = shared.examined(2)
    assert cards["sales"]["in_flight_batch"] == 11
    assert cards["sales"]["committed_batch"] == 10
    assert cards["sales"]["sources"] == ["kafka"]
    assert cards["sales"]["state_bytes"] > 0
    assert cards["files"]["in_flight_batch"] is None
    assert cards["sales"]["query_id"] == samples.QUERY_ID


def test_a_refresh_brings_only_what_changed(root: Path) -> None:
    with serving(root) as server:
        server.examined(2)
        revision = server.get("/api/fleet").json["revision"]
        time.sleep(1.2)
        quiet = server.get(f"/api/fleet?since={revision}").json
        assert quiet["cards"] == []
        samples.write(root / "sales", {"commits/11": samples.commit_entry()})
        server.wait_for(lambda cards: cards["sales"]["committed_batch"] == 11)
        after = server.get(f"/api/fleet?since={revision}").json
        assert [card["name"] for card in after["cards"]] == ["sales"]


def test_a_checkpoint_that_comes_and_one_that_goes(root: Path) -> None:
    with serving(root) as server:
        cards = server.examined(2)
        revision = server.get("/api/fleet").json["revision"]
        address = f"/api/checkpoints/{cards['sales']['id']}"
        assert server.get(address).status == 200
        shutil.rmtree(root / "sales")
        server.wait_for(lambda cards: set(cards) == {"files"})
        assert server.get(f"/api/fleet?since={revision}").json["gone"] == [cards["sales"]["id"]]
        gone = server.get(address)
        assert gone.status == 404
        assert "below the roots" in gone.json["detail"]
        page = server.get(f"/checkpoints/{cards['sales']['id']}")
        assert page.status == 404
        assert b"No such checkpoint" in page.body


def test_one_checkpoint_has_its_views(shared: Server) -> None:
    shared.examined(2)
    found = detail(shared)
    assert "runs batch 11 again" in found["restart"]
    assert [step["state"] for step in found["protocol"]] == ["done", "now", "waiting"]
    assert found["batches"][-1]["status"] == "in-flight"
    assert found["sources"][0]["parts"][0] == {
        "part": "orders/0",
        "position": "488",
        "started": "480",
    }
    assert found["heat_maps"][0]["partitions"] == [0, 1, 2, 3]
    assert found["restart_load"]["version"] == 11
    assert "floodmark rewind" in json.dumps(found["next_steps"])
    assert set(found["lacks"]) >= {"progress", "marks", "watermark"}


def test_storage_that_fsspec_reaches(tmp_path: Path) -> None:
    place = open_files("memory://served/a/sales")
    samples.put(place, samples.sales(8))
    with serving("memory://served") as server:
        [card] = server.examined().values()
        base = f"/api/checkpoints/{card['id']}"
        for path in (base, f"{base}/anatomy", f"{base}/diff?left=1&right=2"):
            assert server.get(path).status == 200, path
        samples.put(place, {"commits/7": samples.commit_entry()})
        server.wait_for(lambda cards: cards["a/sales"]["committed_batch"] == 7)
        assert server.get(base).json["detail"]["in_flight_batch"] is None


def test_an_answer_that_has_not_changed_is_not_sent_again(root: Path) -> None:
    with serving(root) as server:
        cards = server.examined(2)
        address = f"/api/checkpoints/{cards['sales']['id']}"
        time.sleep(1.1)
        first = server.get(address)
        again = server.get(address, If_None_Match=first.headers["etag"])
        assert again.status in (200, 304)  # a minute may end between the two
        if again.status == 200:
            again = server.get(address, If_None_Match=again.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        samples.write(root / "sales", {"commits/11": samples.commit_entry()})
        assert server.get(address, If_None_Match=first.headers["etag"]).status == 200


def test_files_differences_and_plans(shared: Server) -> None:
    cards = shared.examined(2)
    base = f"/api/checkpoints/{cards['sales']['id']}"
    told = shared.get(f"{base}/anatomy").json
    assert told["read_files"] < told["files"]
    diff = shared.get(f"{base}/diff?left=3&right=5").json
    assert any(one["where"].startswith("source 0") for one in diff["differences"])
    other = shared.get(f"{base}/diff?other={cards['files']['id']}").json
    assert other["right"] == "files"
    assert shared.get(f"{base}/diff").status == 409
    purged = shared.get(f"{base}/diff?left=3&right=999")
    assert purged.status == 409
    assert "999" in purged.json["detail"]
    plan = shared.get(f"{base}/plans/rewind").json
    assert plan["command"].endswith("--to-batch 9 --execute")
    assert any("offsets/10" in line for line in plan["lines"])
    assert shared.get(f"{base}/plans/forget").status == 422
    assert (Path(cards["sales"]["path"]) / "offsets" / "11").exists()


def test_what_floodmark_changed_is_marked(root: Path) -> None:
    floodmark.rewind(str(root / "sales"), to_batch=7, execute=True)
    with serving(root) as server:
        server.examined(2)
        found = [mark for mark in detail(server)["marks"] if mark["kind"] == "floodmark"]
        assert [(mark["batch"], mark["words"]) for mark in found] == [
            (8, "floodmark rewind: finished")
        ]


@pytest.mark.parametrize("place", sorted(GOLDEN.glob("*/checkpoint")), ids=lambda p: p.parent.name)
def test_every_golden_checkpoint_is_shown(place: Path, server_of_golden: Server) -> None:
    name = f"{place.parent.name}/checkpoint"
    card = server_of_golden.cards()[name]
    address = f"/api/checkpoints/{card['id']}"
    answer = server_of_golden.get(address)
    assert answer.status == 200, answer.body
    plain = floodmark.inspect(str(place))
    assert answer.json["detail"]["latest_batch"] == plain.latest_batch
    assert plain.restart is None or answer.json["detail"]["restart"] == plain.restart.words
    assert server_of_golden.get(f"{address}/anatomy").status == 200


@pytest.fixture(scope="module")
def server_of_golden():  # type: ignore[no-untyped-def]
    with serving(GOLDEN) as server:
        server.examined(len(list(GOLDEN.glob("*/checkpoint"))))
        yield server


def test_names_and_values_never_become_markup(tmp_path: Path) -> None:
    folder = tmp_path / "data" / SCRIPT.replace("/", "_")
    tree = samples.logs(range(3), range(3), offset=lambda n: samples.kafka_offset(n, SCRIPT))
    tree["metadata"] = json.dumps({"id": SCRIPT}).encode()
    samples.write(folder, tree)
    with serving(tmp_path / "data") as server:
        [card] = server.examined().values()
        page = server.get(f"/checkpoints/{card['id']}")
        assert page.status == 200
        assert b"<script>alert" not in page.body
        assert b"&lt;script&gt;" in page.body
        answer = server.get(f"/api/checkpoints/{card['id']}")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    secret = "s3cr3t-Pa55word-x9"
    tree = samples.logs(range(3), range(3))
    conf = samples.CONF | {
        "spark.hadoop.fs.s3a.secret.key": secret,
        "spark.sql.shuffle.partitions": "4",
    }
    for batch in range(3):
        tree[f"offsets/{batch}"] = samples.offset_entry(
            batch, f'{{"url":"https://me:{secret}@host/x?sig={secret}"}}', conf=conf
        )
    note = {
        "floodmark": "start-note",
        "next_batch": 0,
        "sources": [
            {
                "kind": "kafka",
                "options": {
                    "kafka.bootstrap.servers": f"me:{secret}@broker:9092",
                    "kafka.sasl.jaas.config": f'password="{secret}"',
                },
            }
        ],
        "sink": f"jdbc:postgresql://me:{secret}@db/x",
    }
    tree["_floodmark/starts/1.json"] = json.dumps(note).encode()
    samples.write(tmp_path / "data" / "a", tree)
    samples.write(tmp_path / "data" / "b", samples.logs(range(2), range(2)))
    with serving(tmp_path / "data") as server:
        cards = server.examined(2)
        base = f"/api/checkpoints/{cards['a']['id']}"
        for path in (
            "/api/fleet",
            base,
            f"{base}/anatomy",
            f"{base}/diff?left=0&right=1",
            f"{base}/diff?other={cards['b']['id']}",
            f"{base}/plans/rewind",
            f"/checkpoints/{cards['a']['id']}",
        ):
            assert secret.encode() not in server.get(path).body, path


def test_storage_that_hangs_makes_one_card_grey(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = samples.write(tmp_path / "slow" / "stuck", samples.sales(5)).parent
    plain = LocalFiles.folder_stamps
    hang = {"on": False}

    def stamps(self: LocalFiles, *folders: str) -> tuple[int | None, ...]:
        deadline = time.monotonic() + 300
        while hang["on"] and "stuck" in self.root and time.monotonic() < deadline:
            time.sleep(0.05)
        return plain(self, *folders)

    monkeypatch.setattr(LocalFiles, "folder_stamps", stamps)
    with serving(root, slow, patience=1.0) as server:
        server.examined(3)
        hang["on"] = True
        try:
            cards = server.wait_for(lambda cards: cards["stuck"]["health"] == "unknown")
            assert "has not answered" in cards["stuck"]["problem"]
            assert cards["sales"]["health"] != "unknown"
            samples.write(root / "sales", {"commits/11": samples.commit_entry()})
            server.wait_for(lambda cards: cards["sales"]["committed_batch"] == 11)
            assert server.get("/").status == 200
        finally:
            hang["on"] = False
        server.wait_for(lambda cards: cards["stuck"]["health"] != "unknown")


def test_a_checkpoint_that_cannot_be_read_is_grey_and_says_why(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = LocalFiles.folder_stamps

    def stamps(self: LocalFiles, *folders: str) -> tuple[int | None, ...]:
        if self.root.endswith("/sales"):
            raise RuntimeError("a driver's own words, token=abcdef1234567890")
        return plain(self, *folders)

    monkeypatch.setattr(LocalFiles, "folder_stamps", stamps)
    with serving(root) as server:
        cards = server.wait_for(lambda c: len(c) == 2 and c["sales"]["problem"])
        assert cards["sales"]["health"] == "unknown"
        assert "a driver's own words" in cards["sales"]["problem"]
        assert "abcdef1234567890" not in cards["sales"]["problem"]
        server.wait_for(lambda c: c["files"]["findings"])


def test_flows_of_a_pipeline_stand_together(tmp_path: Path) -> None:
    flow = tmp_path / "lake" / "_checkpoints" / "main" / "sales" / "orders" / "orders"
    samples.write(flow / "0", samples.sales(6))
    samples.write(flow / "1", samples.sales(6))
    (flow.parent / "backfill" / "0").mkdir(parents=True)
    with serving(tmp_path) as server:
        cards = server.examined(3)
        assert {card["group"] for card in cards.values()} == {"lake"}
        assert cards["orders/0"]["superseded"]
        assert cards["orders/0"]["health"] == "idle"
        assert cards["orders/1"]["health"] == "stalled"
        assert cards["orders · backfill/0"]["problem"] is None


def test_a_query_id_of_ten_thousand_characters(tmp_path: Path) -> None:
    tree = samples.logs(range(3), range(3))
    tree["metadata"] = json.dumps({"id": "q" * 10_000}).encode()
    samples.write(tmp_path / "data" / "long", tree)
    with serving(tmp_path / "data") as server:
        [card] = server.examined().values()
        assert len(card["query_id"]) < 400
        assert card["query_id"].endswith("(10,000 characters)")
        assert len(detail(server, "long")["query_id"]) < 400


def test_dstreams_and_damaged_ones_have_a_page(tmp_path: Path) -> None:
    samples.write(tmp_path / "old", {"checkpoint-1700000000000": b"LZ4Block"})
    samples.write(tmp_path / "torn", {**samples.logs(range(3), range(2)), "offsets/2": b""})
    with serving(tmp_path) as server:
        cards = server.examined(2)
        assert cards["torn"]["findings"]["error"] >= 1
        for card in cards.values():
            answer = server.get(f"/api/checkpoints/{card['id']}")
            assert answer.status == 200, answer.body
            assert server.get(f"/checkpoints/{card['id']}").status == 200


def test_a_dstreams_folder_is_followed(tmp_path: Path) -> None:
    """By the names of its files: they hold the times of the batches that it was saved for."""
    folder = tmp_path / "data" / "words"
    shutil.copytree(GOLDEN / "dstreams" / "checkpoint", folder)
    with serving(tmp_path / "data") as server:
        [card] = server.examined().values()
        assert (card["kind"], card["health"]) == ("dstreams", "stalled")
        assert card["last_commit_ms"] == 1794737452000
        assert card["dstreams"] == {"batch_ms": 2000, "pending": 0}
        assert card["state_bytes"] == 704
        now_ms = int(time.time() * 1000)
        newest = folder / "checkpoint-1794737452000"
        for back in range(6):
            shutil.copy(newest, folder / f"checkpoint-{now_ms - 2000 * back}")
        cards = server.wait_for(lambda cards: cards["words"]["last_commit_ms"] == now_ms)
        assert cards["words"]["committed_batch"] is None
        [sample] = server.get(f"/api/checkpoints/{card['id']}/history?hours=9000").json["samples"]
        assert sample["state_bytes"] == 704


def test_a_dstreams_folder_on_other_storage(tmp_path: Path) -> None:
    source = GOLDEN / "dstreams" / "checkpoint"
    tree = {
        str(path.relative_to(source)): path.read_bytes()
        for path in source.rglob("*")
        if path.is_file()
    }
    samples.put(open_files("memory://served-dstreams/words"), tree)
    with serving("memory://served-dstreams") as server:
        [card] = server.examined().values()
        assert card["last_commit_ms"] == 1794737452000
        told = server.get(f"/api/checkpoints/{card['id']}").json["detail"]["dstreams"]
        assert told["restart_file"] == "checkpoint-1794737452000"
        assert [one["role"] for one in told["saved"][-2:]] == ["then", "restart"]


def test_the_openapi_names_every_route(shared: Server) -> None:
    described = shared.get("/openapi.json").json
    assert set(described["paths"]) >= {
        "/api/fleet",
        "/api/checkpoints/{id}",
        "/api/checkpoints/{id}/anatomy",
        "/api/checkpoints/{id}/history",
        "/api/checkpoints/{id}/diff",
        "/api/checkpoints/{id}/plans/{verb}",
        "/api/health",
    }
    assert all(set(route) == {"get"} for route in described["paths"].values())
    assert shared.get("/docs").status == 404


def test_charts_come_out_of_the_installed_package(shared: Server) -> None:
    script = shared.get("/static/charts.js")
    assert script.status == 200
    assert b"plotly.js" in script.body[:200]
    page = shared.get("/").body.decode()
    assert "http://" not in page
    assert "https://" not in page


def test_metrics_are_for_prometheus(root: Path) -> None:
    samples.write(root / "gone", {"offsets/0": b"", "metadata": b"{"})
    with serving(root) as server:
        server.examined(3)
        answer = server.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = answer.body.decode().splitlines()
        where = f'checkpoint="{root}/sales"'
        assert f"floodmark_checkpoint_committed_batch{{{where}}} 10" in lines
        assert f"floodmark_checkpoint_in_flight{{{where}}} 1" in lines
        assert any(line.startswith("floodmark_state_size_bytes{" + where) for line in lines)
        assert f"floodmark_checkpoint_starts{{{where}}} 0" in lines


def test_metrics_have_the_last_batch_as_its_line_of_progress_tells(tmp_path: Path) -> None:
    line = {"batch": 5, "duration_ms": 1500, "rows": 40, "rows_out": 7, "late_rows": 2}
    line |= {"durations_ms": {"addBatch": 1200}, "state_rows": 11, "state_bytes": 900}
    tree = samples.logs(range(6), range(6)) | {
        "_floodmark/progress.jsonl": json.dumps(line).encode() + b"\n",
        "_floodmark/starts/0.json": b"{}",
    }
    folder = samples.write(tmp_path / "sales", tree)
    with serving(tmp_path) as server:
        server.examined()
        lines = server.get("/metrics").body.decode().splitlines()
        where = f'checkpoint="{folder}"'
        assert f"floodmark_checkpoint_last_batch_duration_seconds{{{where}}} 1.5" in lines
        phase = f'{{{where},phase="addBatch"}}'
        assert f"floodmark_checkpoint_last_batch_phase_duration_seconds{phase} 1.2" in lines
        assert f"floodmark_checkpoint_last_batch_input_rows{{{where}}} 40" in lines
        assert f"floodmark_checkpoint_last_batch_late_rows{{{where}}} 2" in lines
        assert f"floodmark_checkpoint_state_rows{{{where}}} 11" in lines
        assert f"floodmark_checkpoint_starts{{{where}}} 1" in lines


def test_sources_are_not_asked_unless_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.api.lagging.lag", lambda *_, **__: pytest.fail("it was asked"))
    with serving(root) as server:
        cards = server.examined(2)
        time.sleep(1.1)
        assert cards["sales"]["lag"]["records"] is None
        assert server.get("/api/fleet").json["asks_lag"] is False


def test_a_broker_that_does_not_answer_is_said_in_the_card(root: Path) -> None:
    """Nothing listens at that port; the page and the other cards go on."""
    with serving(root, bootstrap_servers="127.0.0.1:1") as server:
        cards = server.wait_for(lambda cards: cards and cards["sales"]["lag"]["problem"])
        assert "127.0.0.1:1" in cards["sales"]["lag"]["problem"]
        assert cards["sales"]["health"] != "unknown"
        answer = server.get(f"/api/checkpoints/{cards['sales']['id']}").json
        assert "127.0.0.1:1" in answer["lag"]["sources"][0]["error"]
