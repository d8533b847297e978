"""`inspect`, `batches`, `doctor` and `scan` of a DStreams folder."""

from __future__ import annotations

import json
import pickle
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import samples
from floodmark.checkpoint.checksums.sidefiles import side_file_of
from floodmark.checkpoint.dstreams.folder import DStream, Graph
from floodmark.cli.main import run
from floodmark.storage.files import Files
from rules.examples import golden

Capture = pytest.CaptureFixture[str]
NEWEST = "checkpoint-1794737452000"


def _json(capsys: Capture, *arguments: object) -> dict:
    assert run([*map(str, arguments), "--json"]) in (0, 1)
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return samples.write(tmp_path / "cp", golden("4.2/dstreams"))


def test_inspect_has_the_promised_fields(place: Path, capsys: Capture) -> None:
    found = _json(capsys, "inspect", place)
    assert found["kind"] == "dstreams"
    inside = found["dstreams"]
    assert inside["checkpoint_times"] == list(range(1794737438000, 1794737453000, 2000))
    assert inside["restart_file"] == NEWEST
    assert inside["fall_back_file"] == f"{NEWEST}.bk"
    assert (inside["batch_ms"], inside["checkpoint_interval_ms"]) == (2000, 2000)
    assert (inside["state_interval_ms"], inside["pending_times"]) == (10_000, [])
    assert [(one["path"][-7:], one["partitions"], one["bytes"]) for one in inside["rdds"]] == [
        ("rdd-134", 2, 352),
        ("/rdd-64", 2, 352),
    ]
    assert inside["master"] == "local[2]"
    assert inside["conf"]["spark.rdd.compress"] == "True"


@pytest.mark.parametrize("damage", [b"", b"LZ4Block", None])
def test_a_damaged_newest_file_is_passed_over_and_said(
    damage: bytes | None, place: Path, capsys: Capture
) -> None:
    whole = (place / NEWEST).read_bytes()
    (place / NEWEST).write_bytes(whole[:4000] if damage is None else damage)
    inside = _json(capsys, "inspect", place)
    assert inside["dstreams"]["restart_file"] == f"{NEWEST}.bk"
    assert inside["dstreams"]["fall_back_file"] == "checkpoint-1794737450000"
    assert [one["path"] for one in inside["unreadable"]] == [NEWEST]
    assert run(["inspect", str(place)]) == 0
    assert f"Spark loads {NEWEST}.bk" in capsys.readouterr().out
    found = _json(capsys, "doctor", place)["findings"]
    (told,) = [
        one for one in found if (one["rule"], one["path"]) == ("dstreams-unreadable", NEWEST)
    ]
    assert told["what"].endswith(f"The next older file that can be read is {NEWEST}.bk.")
    (seen,) = _json(capsys, "scan", place.parent)["checkpoints"]
    assert any("dstreams-unreadable" in text for text in seen["findings"])


def test_nothing_can_be_read(place: Path, capsys: Capture) -> None:
    for path in place.glob("checkpoint-*"):
        path.write_bytes(b"\xac\xed\x00\x05")
    inside = _json(capsys, "inspect", place)["dstreams"]
    assert inside["restart_file"] is None
    assert (inside["batch_ms"], inside["pending_times"]) == (None, None)
    assert len(inside["rdds"]) == 2
    assert run(["inspect", str(place)]) == 0
    assert "getOrCreate fails here" in capsys.readouterr().out
    assert run(["batches", str(place)]) == 3
    assert run(["state", str(place)]) == 3
    capsys.readouterr()
    assert {one["severity"] for one in _json(capsys, "doctor", place)["findings"]} >= {"error"}


def test_batches_are_named_by_their_times(capsys: Capture, tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("3.5/dstreams"))
    found = _json(capsys, "batches", place)["batches"]
    assert [one["batch"] for one in found] == list(range(1794736944000, 1794736963000, 2000))
    assert [one["status"] for one in found] == ["committed"] * 5 + ["in-flight"] * 5
    assert found[0]["sources"][0]["kind"] == "file"
    assert found[0]["sources"][0]["offset"]["files"][0].endswith("/in/lines.txt")
    assert len(_json(capsys, "batches", place, "--last", "3")["batches"]) == 3
    assert run(["batches", str(place)]) == 0
    assert "1 file" in capsys.readouterr().out


def test_received_logs_and_what_was_left_over(tmp_path: Path, capsys: Capture) -> None:
    tree = golden("4.2/dstreams-scala")
    tree["temp"] = b"half"
    tree["b8ee0b29-280e-4c4d-9eaa-d135e825c700/rdd-125/.part-00000-attempt-7"] = b"half"
    tree["receivedData/evil/log-1-2"] = b"?"
    place = samples.write(tmp_path / "cp", tree)
    inside = _json(capsys, "inspect", place)["dstreams"]
    logs = {one["path"]: one for one in inside["received"]}
    assert len(logs) == 2
    data = logs["receivedData/1/log-1794832872850-1794832932850"]
    assert (data["stream"], data["start_ms"], data["end_ms"]) == (1, 1794832872850, 1794832932850)
    assert len(inside["temporary"]) == 2
    assert run(["inspect", str(place)]) == 0
    text = capsys.readouterr().out
    assert "2 logs" in text
    assert "left over" in text


def test_inspect_shows_the_settings_that_decide_what_is_kept(
    tmp_path: Path, capsys: Capture
) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/dstreams-scala"))
    assert run(["inspect", str(place)]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if "27 settings" in one]
    assert line.split("settings   ")[-1].strip().split(", ") == [
        "spark.io.compression.codec=snappy",
        "spark.streaming.receiver.writeAheadLog.enable=true",
    ]
    assert run(["inspect", str(samples.write(tmp_path / "py", golden("4.2/dstreams")))]) == 0
    assert "--json lists them" in capsys.readouterr().out


def test_a_scan_tells_of_damage(tmp_path: Path, capsys: Capture) -> None:
    tree = golden("4.2/dstreams")
    samples.write(tmp_path / "root" / "sound", tree)
    rdd = next(path for path in tree if "/rdd-134/part-00000" in path)
    samples.write(tmp_path / "root" / "torn", {k: v for k, v in tree.items() if k != rdd})
    found = {
        Path(one["path"]).name: one
        for one in _json(capsys, "scan", tmp_path / "root")["checkpoints"]
    }
    assert {one["kind"] for one in found.values()} == {"dstreams"}
    assert any("dstreams-incomplete-rdd" in text for text in found["torn"]["findings"])


def test_names_that_steer_a_terminal(tmp_path: Path, capsys: Capture) -> None:
    place = samples.write(
        tmp_path / "cp", {**golden("4.2/dstreams"), "\x1b[2Jrdd-1/part-00000": b"x"}
    )
    assert run(["inspect", str(place)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_thousands_of_broken_files_are_not_all_read(tmp_path: Path, capsys: Capture) -> None:
    tree = {f"checkpoint-{1700000000000 + at}": b"\xac\xed\0\5" for at in range(500)}
    place = samples.write(tmp_path / "cp", tree)
    found = _json(capsys, "inspect", place)
    assert len(found["unreadable"]) == 20
    assert len(found["dstreams"]["checkpoint_times"]) == 500


def test_the_last_part_of_a_state_is_missed(place: Path, capsys: Capture) -> None:
    """Spark counts the parts that it finds, and would go on with half of the keys."""
    rdd = next(place.glob("*/rdd-134"))
    (rdd / "part-00001").unlink()
    found = {one["path"][-7:]: one for one in _json(capsys, "inspect", place)["dstreams"]["rdds"]}
    assert found["rdd-134"]["missing"] == 1
    rules = {one["rule"] for one in _json(capsys, "doctor", place)["findings"]}
    assert "dstreams-incomplete-rdd" in rules
    # The state before it is whole, and is what is shown.
    assert _json(capsys, "state", place)["batch"] == 1794737442000
    assert run(["state", str(place), "--batch", "1794737452000"]) == 1


def _with_stream(place: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """One more stream with state, of which nothing is saved yet."""
    import floodmark.storage.dstreams as loading

    def both(files: Files, path: str) -> Graph:
        graph = read(files, path)
        unsaved = DStream("PythonStateDStream", checkpoint_interval_ms=10_000)
        streams = list(graph.streams)
        streams.insert(at, unsaved)
        return replace(graph, streams=tuple(streams))

    read = loading.read_graph_file
    monkeypatch.setattr(loading, "read_graph_file", both)


@pytest.mark.parametrize(("unsaved", "saved"), [(0, 3), (5, 2)])
def test_an_unsaved_state_is_not_taken_for_the_saved_one_beside_it(
    unsaved: int, saved: int, place: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_stream(place, monkeypatch, unsaved)
    export = place.parent / "state.parquet"
    status = run(["state", str(place), "--export", str(export)])
    err = capsys.readouterr().err
    assert status in (1, 2)
    assert "not saved yet" in err
    assert f"{saved} (PythonStateDStream)" in err
    assert not export.exists()
    assert run(["state", str(place), "--operator", str(unsaved)]) == 1
    assert f"the state of stream {unsaved} is not saved yet" in capsys.readouterr().err
    assert len(_json(capsys, "state", place, "--operator", saved)["rows"]) == 2


@pytest.mark.parametrize("damage", ["cut", "empty", "altered"])
def test_the_states_that_a_restart_needs_are_read(
    damage: str, place: Path, capsys: Capture
) -> None:
    part = next(place.glob("*/rdd-134")) / "part-00001"
    data = part.read_bytes()
    if damage == "altered":
        part.with_name(".part-00001.crc").write_bytes(side_file_of(data))
        data = data[:-1] + bytes([data[-1] ^ 255])
    part.write_bytes({"cut": data[:-20], "empty": b"", "altered": data}[damage])
    assert run(["doctor", str(place)]) == 1
    assert "Saved RDDs were not opened; --read-data opens them." in capsys.readouterr().out
    found = _json(capsys, "doctor", place, "--read-data")["findings"]
    told = [one["path"] for one in found if one["rule"] == "dstreams-incomplete-rdd"]
    assert told == [str(part.relative_to(place))]


def test_sound_states_and_states_of_other_data_are_no_finding(
    place: Path, capsys: Capture, tmp_path: Path
) -> None:
    scala = samples.write(tmp_path / "scala", golden("4.2/dstreams-scala"))
    part = next(place.glob("*/rdd-134")) / "part-00001"
    for cp in (place, scala):
        found = _json(capsys, "doctor", cp, "--read-data")["findings"]
        assert "dstreams-incomplete-rdd" not in {one["rule"] for one in found}
    # A pickle that would run code is followed, and not run; one that is cut is damage.
    marker = tmp_path / "ran"
    pickled = pickle.dumps([("key", _Runs(str(marker)))], protocol=5)
    for whole in (True, False):
        part.write_bytes(_java_bytes(pickled if whole else pickled[:-1]))
        found = _json(capsys, "doctor", place, "--read-data")["findings"]
        assert ("dstreams-incomplete-rdd" in {one["rule"] for one in found}) is not whole
    assert not marker.exists()


class _Runs:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


def _java_bytes(data: bytes) -> bytes:
    """A stream of Java objects with one `byte[]`."""
    described = b"\x72\x00\x02[B" + bytes(8) + b"\x02\x00\x00\x78\x70"
    return b"\xac\xed\x00\x05\x75" + described + struct.pack(">i", len(data)) + data
