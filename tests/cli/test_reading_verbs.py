"""What the reading verbs print: the JSON that contract.md fixes, and text for a person."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import samples
from floodmark.cli import text as words
from floodmark.cli.main import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    return samples.write(tmp_path / "sales", samples.sales(8))


def _json(capsys: Capture, status: int, *arguments: object) -> Any:
    assert run([*map(str, arguments), "--json"]) == status
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1, "one document, and nothing else"
    return json.loads(out)


def _text(capsys: Capture, status: int, *arguments: object) -> str:
    assert run([*map(str, arguments)]) == status
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out, "no colour where stdout is not a terminal"
    assert all(line == line.rstrip() for line in out.splitlines())
    return out


def test_inspect_as_the_contract_has_it(sales: Path, capsys: Capture) -> None:
    seen = _json(capsys, 0, "inspect", sales)
    files = [path for path in sales.rglob("*") if path.is_file()]
    expected = {
        "path": str(sales),
        "kind": "structured-streaming",
        "query_id": samples.QUERY_ID,
        "latest_batch": 7,
        "committed_batch": 6,
        "in_flight_batch": 7,
        "watermark_ms": 0,
        "batch_time_ms": samples.time_of(7),
        "offset_log_version": 1,
        "commit_log_version": 1,
        "sources": [{"id": "0", "kind": "kafka", "offset": {"orders": {"0": 456, "1": 563}}}],
        "conf": samples.CONF,
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "unreadable": [],
    }
    assert {key: seen[key] for key in expected} == expected
    (state,) = seen["state"]
    assert {
        key: state[key] for key in ("operator", "name", "provider", "partitions", "stores")
    } == {
        "operator": 0,
        "name": "stateStoreSave",
        "provider": "hdfs",
        "partitions": 4,
        "stores": ["default"],
    }


def test_inspect_of_a_checkpoint_with_nothing_yet(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.logs([], []))
    seen = _json(capsys, 0, "inspect", tmp_path)
    for key in ("latest_batch", "committed_batch", "in_flight_batch", "watermark_ms"):
        assert seen[key] is None
    for key in ("batch_time_ms", "offset_log_version", "commit_log_version"):
        assert seen[key] is None
    assert (seen["sources"], seen["state"], seen["conf"]) == ([], [], {})
    assert "begins with batch 0" in _text(capsys, 0, "inspect", tmp_path)


def test_inspect_of_dstreams(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "checkpoint-1700000000000").write_bytes(b"\xac\xed")
    (tmp_path / "checkpoint-1700000000000.bk").write_bytes(b"\xac\xed")
    seen = _json(capsys, 0, "inspect", tmp_path)
    assert (seen["kind"], seen["query_id"], seen["latest_batch"]) == ("dstreams", None, None)
    text = _text(capsys, 0, "inspect", tmp_path)
    assert "DStreams" in text
    assert "2 checkpoints" in text


def test_inspect_for_a_person(sales: Path, capsys: Capture) -> None:
    text = _text(capsys, 0, "inspect", sales)
    lines = text.splitlines()
    assert lines[0].startswith(str(sales))
    assert samples.QUERY_ID in lines[0]
    for part in (
        "1  planned     offsets/7",
        "2  processed   batch 7",
        "no commit yet",
        "3  committed   commits/6",
        "orders   0: 448 → 456   1: 554 → 563",
        "stateStoreSave",
        "hdfs, 4 partitions, version 7",
        "If it restarts now, Spark runs batch 7 again over the same offsets. Nothing is lost.",
    ):
        assert part in text


def test_batches(sales: Path, capsys: Capture) -> None:
    seen = _json(capsys, 0, "batches", sales)
    assert list(seen) == ["batches"]
    assert [batch["batch"] for batch in seen["batches"]] == list(range(8))
    assert [batch["status"] for batch in seen["batches"]] == ["committed"] * 7 + ["in-flight"]
    last = seen["batches"][-1]
    assert last == {
        "batch": 7,
        "status": "in-flight",
        "time_ms": samples.time_of(7),
        "watermark_ms": 0,
        "sources": [{"id": "0", "kind": "kafka", "offset": {"orders": {"0": 456, "1": 563}}}],
    }
    assert _json(capsys, 0, "batches", sales, "--last", 1) == {"batches": [last]}
    text = _text(capsys, 0, "batches", sales)
    assert len(text.splitlines()) == 9
    assert text.splitlines()[-1].startswith("7       in-flight")
    assert " → 456" in text.splitlines()[-1]


def _option(capsys: Capture, verb: str, place: Path, beside: str, *more: object) -> str:
    """What a pipe gets; what the option does not say goes to the terminal beside it."""
    assert run([verb, str(place), "--starting-offsets", *map(str, more)]) == 0
    out, err = capsys.readouterr()
    assert beside in err
    return out


def test_offsets(sales: Path, capsys: Capture) -> None:
    text = '{"orders":{"0":448,"1":554}}'
    alike = "Event Hubs' offsets look the same"
    assert _option(capsys, "offsets", sales, alike) == text + "\n"
    at = _option(capsys, "offsets", sales, alike, "--batch", 3)
    assert json.loads(at) == {"orders": {"0": 424, "1": 527}}
    seen = _json(capsys, 0, "offsets", sales)
    assert (seen["batch"], seen["committed"]) == (6, True)
    (source,) = seen["sources"]
    assert source["offset"] == json.loads(text)
    assert (source["option"]["name"], source["option"]["value"]) == ("startingOffsets", text)


@pytest.mark.parametrize(
    ("at", "batch"),
    [
        ("2026-11-14T23:47:15.999Z", 2),
        ("2026-11-14T23:47:16Z", 3),
        ("2026-11-15T00:47:16+01:00", 3),
        ("2099-01-01", 6),
    ],
)
def test_offsets_by_time(at: str, batch: int, sales: Path, capsys: Capture) -> None:
    assert samples.time_of(3) == 1_794_700_036_000  # 2026-11-14T23:47:16Z
    assert _json(capsys, 0, "offsets", sales, "--at", at)["batch"] == batch


@pytest.mark.parametrize("name", ["continuous", "rate-micro-batch", "rate"])
def test_where_a_source_began_stands_in_its_own_file(name: str, capsys: Capture) -> None:
    """Without `sources/<id>/0` nobody knows: a rate source that runs continuously has none."""
    golden = Path(__file__).parents[1] / "golden" / "4.2" / name / "checkpoint"
    (source,) = _json(capsys, 0, "offsets", golden)["sources"]
    assert source["began"] == (0 if (golden / "sources/0/0").exists() else None)


def test_offsets_of_delta(tmp_path: Path, capsys: Capture) -> None:
    tree = samples.logs([0], [0], offset=lambda _: samples.DELTA_OFFSET)
    samples.write(tmp_path, tree)
    form = _option(capsys, "offsets", tmp_path, "nothing of 7.")
    assert json.loads(form) == {"startingVersion": 7, "index": -1}
    (source,) = _json(capsys, 0, "offsets", tmp_path)["sources"]
    assert (source["option"]["name"], source["option"]["value"]) == ("startingVersion", "7")
    assert ".option('startingVersion', '7')" in _text(capsys, 0, "offsets", tmp_path)


def test_files(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.file_stream())
    seen = _json(capsys, 0, "files", tmp_path)["files"]
    assert [(file["batch"], file["taken"], file["log_id"]) for file in seen] == [
        (0, "batch", 0),
        (1, "batch", 1),
        (1, "batch", 2),
        (None, "waiting", 3),
    ]
    assert seen[0]["path"] == "file:///in/day 0.json"
    only = _json(capsys, 0, "files", tmp_path, "--batch", 1)["files"]
    assert [file["log_id"] for file in only] == [1, 2]
    text = _text(capsys, 0, "files", tmp_path)
    assert "batch 1   source 0" in text
    assert "waiting" in text


def test_diff_of_two_checkpoints(tmp_path: Path, capsys: Capture) -> None:
    left = samples.write(tmp_path / "left", samples.logs(range(3), range(2)))
    same = samples.write(tmp_path / "same", samples.logs(range(3), range(2)))
    right = samples.write(tmp_path / "right", samples.logs(range(3), range(3)))
    assert _json(capsys, 0, "diff", left, same)["differences"] == []
    assert "No difference" in _text(capsys, 0, "diff", left, same)
    seen = _json(capsys, 1, "diff", left, right)["differences"]
    assert {"where": "committed_batch", "left": 1, "right": 2} in seen
    assert {"where": "in_flight_batch", "left": 2, "right": None} in seen
    text = _text(capsys, 1, "diff", left, right)
    assert "committed batch" in text
    assert "2 differences." in text


def test_topics_of_a_batch_are_told_apart(capsys: Capture) -> None:
    golden = Path(__file__).parents[1] / "golden" / "4.2" / "kafka" / "checkpoint"
    assert "clicks-2   0: 1, orders-1   0: 1   1: 1" in _text(capsys, 0, "batches", golden)


def test_times_name_their_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        told = words.clock(1_794_725_940_976)
    time.tzset()
    assert told == "2026-11-15 12:29:00 IST"


def test_diff_of_two_batches(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.logs(range(3), range(2)))
    seen = _json(capsys, 1, "diff", tmp_path, "--batches", "0..2")["differences"]
    assert {"where": "source 0 orders 0", "left": 400, "right": 416} in seen
    assert _json(capsys, 0, "diff", tmp_path, "--batches", "1..1")["differences"] == []


def test_scan(tmp_path: Path, capsys: Capture) -> None:
    root = tmp_path / "root"
    samples.write(root / "b/sales", samples.sales(3))
    samples.write(root / "a/broken", samples.logs([0], [0]) | {"offsets/0": b"v1"})
    samples.write(root / "old", {"checkpoint-1700000000000": b"x"})
    samples.write(root / "data", {"part-0.parquet": b"x", "_delta_log/0.json": b"{}"})
    seen = _json(capsys, 0, "scan", root)
    assert list(seen) == ["checkpoints"]
    assert [entry["path"] for entry in seen["checkpoints"]] == [
        f"{root}/a/broken",
        f"{root}/b/sales",
        f"{root}/old",
    ]
    broken, sales, old = seen["checkpoints"]
    for entry in seen["checkpoints"]:
        assert set(entry) >= {
            "path",
            "kind",
            "query_id",
            "latest_batch",
            "committed_batch",
            "in_flight_batch",
            "bytes",
            "findings",
        }
    assert (sales["latest_batch"], sales["committed_batch"], sales["in_flight_batch"]) == (2, 1, 2)
    assert sales["findings"] == []
    assert broken["findings"][0].startswith("FM105 unreadable-log-entry: ")
    assert old["kind"] == "dstreams"
    assert old["findings"][0].startswith("FM143 dstreams-unreadable: checkpoint-1700000000000 ")
    text = _text(capsys, 0, "scan", root)
    assert "3 checkpoints, 2 with something to look at." in text


def test_scan_finds_half_a_checkpoint_and_not_what_changes_have_kept(
    tmp_path: Path, capsys: Capture
) -> None:
    tree = samples.sales(3)
    half = {k: v for k, v in tree.items() if not k.startswith(("commits/", "metadata"))}
    kept = {f"_floodmark/kept/1/target/{path}": data for path, data in tree.items()}
    samples.write(tmp_path / "half", half | kept)
    samples.write(tmp_path / "gone", kept)
    found = _json(capsys, 0, "scan", tmp_path)["checkpoints"]
    assert [entry["path"] for entry in found] == [f"{tmp_path}/half"]
    assert found[0]["findings"][0].startswith("FM102 metadata-missing: ")


def test_scan_of_several_roots_and_of_none(tmp_path: Path, capsys: Capture) -> None:
    one = samples.write(tmp_path / "one", samples.logs([0], [0]))
    two = samples.write(tmp_path / "two", samples.logs([0], [0]))
    found = _json(capsys, 0, "scan", two, one)["checkpoints"]
    assert [entry["path"] for entry in found] == [str(one), str(two)]
    (tmp_path / "none").mkdir()
    assert _json(capsys, 0, "scan", tmp_path / "none") == {"checkpoints": []}
    assert _text(capsys, 0, "scan", tmp_path / "none") == "No checkpoint found.\n"


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links here")
def test_scan_says_where_it_did_not_look(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path / "root/sales", samples.logs([0], [0]))
    samples.write(tmp_path / "elsewhere", samples.logs([0], [0]))
    for at in range(7):
        (tmp_path / f"root/link-{at}").symlink_to(tmp_path / "elsewhere")
    assert run(["scan", str(tmp_path / "root"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["checkpoints"]) == 1
    told = err.splitlines()
    assert told[0].startswith(f"not searched: {tmp_path}/root/link-0: a link")
    assert told[5:] == ["not searched: 2 more"]


@pytest.mark.parametrize(
    "verb", ["inspect", "batches", "doctor", "upgrade", "copy", "rewind", "undo", "repair"]
)
def test_a_file_is_no_checkpoint_for_any_verb(verb: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.txt").write_text("text")
    more = {"upgrade": ["new"], "copy": ["new"], "rewind": ["--to-batch", "0"]}.get(verb, [])
    assert run([verb, str(tmp_path / "a.txt"), *more]) == 3
    assert "a.txt is a file, not a checkpoint folder" in capsys.readouterr().err


def test_scan_passes_over_what_it_may_not_read(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    samples.write(tmp_path / "sales", samples.logs([0], [0]))
    (tmp_path / "secret").mkdir()
    opened = os.open

    def choosy(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr("floodmark.storage.descent.os.open", choosy)
    sales, secret = _json(capsys, 0, "scan", tmp_path)["checkpoints"]
    assert sales["latest_batch"] == 0
    assert "permission denied" in secret["findings"][0]


def test_a_storage_that_is_not_a_disk(capsys: Capture) -> None:
    from floodmark.storage.files import open_files

    samples.put(open_files("memory://cli/sales"), samples.logs(range(3), range(2)))
    assert _json(capsys, 0, "inspect", "memory://cli/sales")["in_flight_batch"] == 2
    assert _json(capsys, 0, "batches", "memory://cli/sales")["batches"][0]["batch"] == 0
    (found,) = _json(capsys, 0, "scan", "memory://cli")["checkpoints"]
    assert found["path"] == "memory://cli/sales"


@pytest.mark.services
def test_s3_with_its_options_on_the_command_line(s3: Any, capsys: Capture) -> None:
    from floodmark.storage.files import open_files

    place = s3.place("cli")
    samples.put(open_files(f"{place}/sales", s3.storage_options), samples.logs(range(3), range(2)))
    options = []
    for key, value in s3.storage_options.items():
        text = value if isinstance(value, str) else json.dumps(value)
        options += ["--storage", f"{key}={text}"]
    assert _json(capsys, 0, "inspect", f"{place}/sales", *options)["in_flight_batch"] == 2
    (found,) = _json(capsys, 0, "scan", place, *options)["checkpoints"]
    assert found["path"] == f"{place}/sales"
    err = run(["inspect", f"{place}/nothing", *options])
    assert err == 3
    assert "no such file or folder" in capsys.readouterr().err


# Colour and words ------------------------------------------------------------------------


def test_colour_only_on_a_terminal_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert words.shown(words.style("x", "red")) == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert words.style("x", "red") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert words.style("x", "red") == "x"


def test_paragraphs_are_as_wide_as_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((60, 24)))
    for is_terminal, widest in ((True, 60), (False, 96)):
        monkeypatch.setattr("sys.stdout.isatty", lambda on=is_terminal: on, raising=False)
        lines = words.wrapped("  why  ", "Spark refuses. " * 30, 96)
        assert widest - 15 < max(map(len, lines)) <= widest
        assert {line[:7] for line in lines[1:]} == {"       "}


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (12_000, "12 s"),
        (202_000, "3 min 22 s"),
        (3_600_000, "1 h"),
        (90_000_000, "1 day 1 h"),
        (5 * 86_400_000, "5 days"),
        (2 * 31_557_600_000, "2 years"),
    ],
)
def test_spans_of_time(milliseconds: int, text: str) -> None:
    assert words.duration(milliseconds) == text
    assert words.ago(1_000_000, 1_000_000 + milliseconds) == f"{text} ago"


def test_times_to_come() -> None:
    assert words.ago(5_000, 2_000) == "in 3 s"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1500, "1.5 kB"),
        (12_300_000, "12 MB"),
        (10**15, "1000.0 TB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert words.size(count) == text


# The command itself ----------------------------------------------------------------------


def _command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    program = Path(sys.executable).with_name("floodmark")
    return subprocess.run(
        [str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
        check=False,
    )


def test_the_installed_command(sales: Path, tmp_path: Path) -> None:
    done = _command("inspect", sales, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["in_flight_batch"] == 7
    missing = _command("inspect", tmp_path / "nowhere", "--json")
    assert (missing.returncode, missing.stdout) == (3, "")
    assert missing.stderr.startswith("NotThere: ")
    assert len(missing.stderr.splitlines()) == 2
    assert _command("--version").stdout.startswith("floodmark ")
    debug = _command("inspect", tmp_path / "nowhere", FLOODMARK_DEBUG="1")
    assert "Traceback" in debug.stderr


def test_a_terminal_that_knows_no_arrows(sales: Path) -> None:
    done = _command("inspect", sales, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "commits/6" in done.stdout


def test_reading_loads_neither_spark_nor_fsspec(sales: Path) -> None:
    code = (
        "import sys; from floodmark.cli.main import run; status = run(['inspect', sys.argv[1]]);"
        "heavy = {'pyspark', 'fsspec', 'rich', 'pyarrow', 'numpy'} & set(sys.modules);"
        "sys.exit(status or ', '.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(sales)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reader_of_a_pipe_may_stop_early(tmp_path: Path) -> None:
    samples.write(tmp_path, samples.logs(range(3000), range(3000)))
    program = Path(sys.executable).with_name("floodmark")
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{program}' batches '{tmp_path}' | head -1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("batch")


def test_inspect_sees_that_a_partition_of_the_state_is_gone(sales: Path, capsys: Capture) -> None:
    assert "`floodmark doctor" not in _text(capsys, 0, "inspect", sales)
    shutil.rmtree(sales / "state/0/1")
    text = _text(capsys, 0, "inspect", sales)
    assert f"starts from is missing: state/0/1. `floodmark doctor {sales}` says more" in text


def test_a_source_is_what_the_user_or_a_note_says_where_two_look_alike(
    sales: Path, capsys: Capture
) -> None:
    seen = _json(capsys, 0, "inspect", sales)
    assert seen["could_be"] == {"0": ["eventhubs"]}
    why = "topics and partitions, and sources/<id>/0 begins as Kafka writes it"
    assert seen["recognised"] == {"0": {"sureness": "probable", "why": why}}
    alike = "offsets of eventhubs look the same. If it is one, name it: --source-kind 0=eventhubs"
    assert f"Source 0 is read as kafka; {alike}" in _text(capsys, 0, "inspect", sales)
    named = _text(capsys, 0, "inspect", sales, "--source-kind", "0=kafka")
    assert "look the same" not in named
    said = _json(capsys, 0, "inspect", sales, "--source-kind", "0=eventhubs")
    assert (said["sources"][0]["kind"], said["could_be"]) == ("eventhubs", {})
    assert said["recognised"]["0"]["sureness"] == "certain"
    for wrong in ("0=pulsar", "0=kafak", "0=unknown", "7=kafka", "kafka"):
        assert run(["inspect", str(sales), "--source-kind", wrong]) == 2
    assert "only kafka, eventhubs and python look alike" in capsys.readouterr().err
    note = {"sources": [{"kind": "eventhubs", "options": {}}], "next_batch": 0}
    samples.write(sales, {"_floodmark/starts/1.json": json.dumps(note).encode()})
    noted = _json(capsys, 0, "offsets", sales)["sources"][0]
    assert noted["option"]["name"] == "eventhubs.startingPositions"
    assert noted["note"] is None
    for odd in (7, 1.5, "kafka", {"kind": "kafka"}, [7, None]):  # a stranger may have written it
        note = {"sources": odd, "next_batch": 0}
        samples.write(sales, {"_floodmark/starts/1.json": json.dumps(note).encode()})
        assert _json(capsys, 0, "inspect", sales)["sources"][0]["kind"] == "kafka"


def test_where_a_note_and_the_offset_contradict_each_other_the_user_is_asked(
    tmp_path: Path, capsys: Capture
) -> None:
    """Kafka's log has no negative offset, and its option takes -1 for the end of a partition."""
    tree = samples.logs(range(2), range(2), offset=lambda batch: '{"eh":{"0":23,"1":-1}}')
    note = {"sources": [{"kind": "kafka", "options": {}}], "next_batch": 0}
    cp = samples.write(tmp_path / "cp", tree)
    hubs = _text(capsys, 0, "offsets", cp, "--starting-offsets")
    assert json.loads(hubs).keys() == {
        '{"ehName":"eh","partitionId":0}',
        '{"ehName":"eh","partitionId":1}',
    }
    samples.write(cp, {"_floodmark/starts/1.json": json.dumps(note).encode()})
    assert run(["offsets", str(cp), "--starting-offsets"]) != 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "The note of the last start says kafka" in said.err
    assert "give --source-kind 0=kafka or --source-kind 0=eventhubs" in said.err
    seen = _json(capsys, 0, "inspect", cp)
    assert (seen["could_be"], seen["recognised"]["0"]["sureness"]) == ({"0": ["kafka"]}, "unknown")
    shown = _text(capsys, 0, "inspect", cp)
    assert "Source 0: The note of the last start says kafka" in shown
    assert "--source-kind 0=kafka or --source-kind 0=eventhubs" in shown
    told = ("offsets", cp, "--starting-offsets", "--source-kind")
    assert _text(capsys, 0, *told, "0=eventhubs") == hubs
    assert run([*map(str, told), "0=kafka"]) != 0
    assert "-1 is the end of the partition" in capsys.readouterr().err


def test_a_note_tells_named_sources_by_their_names(tmp_path: Path, capsys: Capture) -> None:
    """The lines of the log have an order of their own."""
    tree = samples.logs(range(1), range(1), offset=lambda batch: '{"orders":{"0":23}}')
    head, line = tree["offsets/0"].decode().rsplit("\n", 1)
    text = "\n".join(["v2", *head.split("\n")[1:], f"b:{line}", f"a:{line}"])
    noted = [{"kind": "eventhubs", "name": "a"}, {"kind": "kafka", "name": "b"}]
    starts = json.dumps({"sources": noted, "next_batch": 0}).encode()
    tree |= {"offsets/0": text.encode(), "_floodmark/starts/1.json": starts}
    seen = _json(capsys, 0, "inspect", samples.write(tmp_path / "cp", tree))
    assert {one["id"]: one["kind"] for one in seen["sources"]} == {"a": "eventhubs", "b": "kafka"}


def test_a_state_that_cannot_be_compared_is_not_said_to_be_equal(
    tmp_path: Path, capsys: Capture
) -> None:
    """The first batch is in flight: the operator is known, and has no state yet."""
    tree = samples.sales(1)
    samples.write(tmp_path, tree)
    text = _text(capsys, 1, "diff", tmp_path, tmp_path)
    assert "No difference" not in text
    assert "not everything was compared" in text
    assert "cannot be compared" in text


def test_the_doctor_says_in_json_too_what_was_not_examined(tmp_path: Path, capsys: Capture) -> None:
    """A query that lost its whole state looks like one that never had any."""
    samples.write(tmp_path, samples.file_stream())
    assert run(["doctor", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["findings"] == []
    assert "There is no state folder" in found["not_examined"]


def test_an_empty_plan_leaves_no_journal(tmp_path: Path, capsys: Capture) -> None:
    """Applied, it hid the change before it from `undo`."""
    place = samples.write(tmp_path / "cp", samples.logs(range(5), range(5)))
    plan = str(tmp_path / "plan.json")
    accept = ["--accept", "out-of-reach", "--accept", "maybe-running"]
    assert run(["rewind", str(place), "--to-batch", "2", *accept, "--execute"]) == 0
    assert run(["compact", str(place), "--out", plan]) == 0
    capsys.readouterr()
    assert run(["apply", plan]) == 0
    assert "There was nothing to carry out." in capsys.readouterr().out
    assert run(["undo", str(place), "--execute"]) == 0
    assert (place / "offsets/4").exists()
