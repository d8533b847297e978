"""Bad input: its own words on stderr, its own exit status, nothing on stdout, no traceback."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import samples
from floodmark.cli.main import VERBS, run

Capture = pytest.CaptureFixture[str]
ONE_CHECKPOINT = ["inspect", "batches", "offsets", "files"]


def _refused(capsys: Capture, status: int, *arguments: object) -> str:
    found = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert (found, out) == (status, ""), err
    assert "Traceback" not in err
    assert "should not happen" not in err
    return err


def _empty(folder: Path) -> Path:
    return folder


def _file(folder: Path) -> Path:
    (folder / "data.csv").write_bytes(b"a,b")
    return folder / "data.csv"


def _no_checkpoint(folder: Path) -> Path:
    (folder / "data.csv").write_bytes(b"a,b")
    return folder


def _missing(folder: Path) -> Path:
    return folder / "nowhere"


def _through_a_file(folder: Path) -> Path:
    return _file(folder) / "ck"


def _several(folder: Path) -> Path:
    samples.write(folder / "sales", samples.logs([0], [0]))
    return folder


def _broken_metadata(folder: Path) -> Path:
    (folder / "metadata").write_bytes(b"")
    return folder


PLACES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "an empty folder": (_empty, "is empty: there is no checkpoint in it"),
    "a file": (_file, "data.csv is a file, not a checkpoint folder"),
    "no checkpoint": (_no_checkpoint, "is not a checkpoint"),
    "missing": (_missing, "nowhere: no such file or folder"),
    "through a file": (_through_a_file, "A part of the path is a file"),
    "a folder of checkpoints": (_several, "is not a checkpoint, but holds some"),
    "an empty metadata file": (_broken_metadata, "metadata file that cannot be read"),
}


@pytest.mark.parametrize("json_flag", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("verb", ONE_CHECKPOINT)
@pytest.mark.parametrize("what", PLACES)
def test_what_is_not_a_checkpoint(
    what: str, verb: str, json_flag: list[str], tmp_path: Path, capsys: Capture
) -> None:
    make, words = PLACES[what]
    assert words in _refused(capsys, 3, verb, make(tmp_path), *json_flag)


@pytest.mark.parametrize("what", PLACES)
def test_diff_with_what_is_not_a_checkpoint(what: str, tmp_path: Path, capsys: Capture) -> None:
    make, words = PLACES[what]
    (tmp_path / "other").mkdir()
    sound = samples.write(tmp_path / "sound", samples.logs([0], [0]))
    assert words in _refused(capsys, 3, "diff", sound, make(tmp_path / "other"))


@pytest.mark.parametrize("verb", ONE_CHECKPOINT)
def test_an_unreadable_path(
    verb: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # chmod does not stop root, which tests may run as.
    def denied(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("floodmark.storage.local.os.scandir", denied)
    err = _refused(capsys, 3, verb, tmp_path)
    assert "permission denied" in err
    assert str(tmp_path) in err


@pytest.mark.parametrize("verb", [*ONE_CHECKPOINT, "scan"])
def test_an_unknown_scheme(verb: str, capsys: Capture) -> None:
    assert "nonsense://x" in _refused(capsys, 2, verb, "nonsense://x")


@pytest.mark.parametrize("verb", [*ONE_CHECKPOINT, "scan"])
def test_an_empty_path(verb: str, capsys: Capture) -> None:
    assert "path is empty" in _refused(capsys, 2, verb, "")


def test_scan_of_a_missing_root(tmp_path: Path, capsys: Capture) -> None:
    assert "no such file" in _refused(capsys, 3, "scan", tmp_path / "nowhere")
    assert "is a file" in _refused(capsys, 3, "scan", _file(tmp_path))


DAMAGES = {
    "cut short": (b'v1\n{"batchWatermarkMs":0,"batchTi', "not JSON"),
    "empty": (b"", "the file is empty"),
    "not UTF-8": (b"v1\n\xff\xfe", "not UTF-8"),
    "an unknown version": (b"v7\n{}\n0", "format version 'v7'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_one_bad_file_does_not_hide_the_rest(damage: str, tmp_path: Path, capsys: Capture) -> None:
    data, words = DAMAGES[damage]
    samples.write(tmp_path, samples.sales(4) | {"offsets/3": data})
    assert run(["inspect", str(tmp_path), "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["latest_batch"] == 3
    assert seen["query_id"] == samples.QUERY_ID
    assert [item["path"] for item in seen["unreadable"]] == ["offsets/3"]
    assert words in seen["unreadable"][0]["reason"]
    assert run(["inspect", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert words in text
    assert "The query does not start: offsets/3 cannot be read" in text
    assert run(["batches", str(tmp_path), "--json"]) == 0
    assert [b["batch"] for b in json.loads(capsys.readouterr().out)["batches"]] == [0, 1, 2, 3]
    assert run(["batches", str(tmp_path)]) == 0
    assert "cannot be read" in capsys.readouterr().out.splitlines()[-1]
    assert words in _refused(capsys, 3, "offsets", tmp_path, "--batch", 3)
    assert run(["offsets", str(tmp_path), "--batch", "2"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--at", "yesterday"], "'yesterday' is not a time"),
        (["--at", "2026-13-45"], "is not a time"),
        (["--at", ""], "is not a time"),
        (["--batch", "seven"], "seven"),
        (["--batch", "1", "--at", "2026-01-01"], "both choose a batch"),
        (["--source", "9", "--starting-offsets"], "no source '9'"),
        (["--source", "9"], "no source '9'"),
        (["--storage", "key"], "a value is not KEY=VALUE"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_wrong_use_of_offsets(
    arguments: list[str], words: str, tmp_path: Path, capsys: Capture
) -> None:
    samples.write(tmp_path, samples.sales(3))
    assert words in _refused(capsys, 2, "offsets", tmp_path, *arguments)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_before_all_batches(at: str, tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.sales(3))
    assert "before the stream began" in _refused(capsys, 1, "offsets", tmp_path, "--at", at)


def test_a_purged_batch(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.logs(range(713, 720), range(713, 719)))
    verbs = (["offsets", "--batch", "40"], ["diff", "--batches", "40..715"])
    for verb in verbs:
        err = _refused(capsys, 1, verb[0], tmp_path, *verb[1:])
        assert "batch 40 is not logged" in err
        assert "713 to 719" in err


def test_two_kafka_sources_have_to_be_chosen_from(tmp_path: Path, capsys: Capture) -> None:
    lines = [samples.kafka_offset(1, "orders"), samples.kafka_offset(2, "clicks")]
    samples.write(tmp_path, samples.logs([0], [0], offset=lambda _: "\n".join(lines)))
    err = _refused(capsys, 2, "offsets", tmp_path, "--starting-offsets")
    assert "2 sources have starting offsets: 0 (kafka), 1 (kafka)" in err
    assert "--source" in err
    assert run(["offsets", str(tmp_path), "--starting-offsets", "--source", "1"]) == 0
    assert capsys.readouterr().out == lines[1] + "\n"


def test_a_source_without_starting_offsets(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.file_stream())
    err = _refused(capsys, 1, "offsets", tmp_path, "--starting-offsets")
    assert "source 0 (file) has no starting offsets" in err


def test_nothing_committed_yet(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.logs([0], []))
    assert "no batch is committed" in _refused(capsys, 1, "offsets", tmp_path)


def test_files_of_a_batch_that_is_not_logged(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.file_stream())
    assert "batch 9 is not planned yet" in _refused(capsys, 1, "files", tmp_path, "--batch", 9)


def test_no_file_source(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.sales(2))
    assert "no source of this stream reads files" in _refused(capsys, 1, "files", tmp_path)
    assert "'7' is not a file source" in _refused(capsys, 2, "files", tmp_path, "--source", "7")


@pytest.mark.parametrize("last", ["0", "-3", "x"])
def test_a_wrong_number_of_batches(last: str, tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.sales(2))
    _refused(capsys, 2, "batches", tmp_path, "--last", last)


@pytest.mark.parametrize(
    "arguments", [[], ["--batches", "5"], ["--batches", "a..b"], ["ck", "--batches", "1..2"]]
)
def test_wrong_use_of_diff(arguments: list[str], tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.logs(range(3), range(3)))
    _refused(capsys, 2, "diff", tmp_path, *arguments)


@pytest.mark.parametrize("verb", [v for v in ONE_CHECKPOINT if v != "inspect"])
def test_a_dstreams_folder_has_no_batches(verb: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "checkpoint-1700000000000").write_bytes(b"\xac\xed")
    err = _refused(capsys, 3, verb, tmp_path)
    assert "is a DStreams checkpoint" in err
    assert "floodmark inspect" in err


@pytest.mark.parametrize("order", [1, -1])
def test_dstreams_are_compared_with_nothing(order: int, tmp_path: Path, capsys: Capture) -> None:
    old = samples.write(tmp_path / "old", {"checkpoint-1700000000000": b"\xac\xed"})
    sound = samples.write(tmp_path / "sound", samples.logs([0], [0]))
    assert "is a DStreams checkpoint" in _refused(capsys, 3, "diff", *[old, sound][::order])


@pytest.mark.parametrize("arguments", [["no-such-verb"], ["inspect"], ["--no-such-option"], []])
def test_wrong_use_of_the_command(arguments: list[str], capsys: Capture) -> None:
    assert run(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["doctor", "upgrade", "rewind"])
def test_a_cluster_has_the_same_names_everywhere(verb: str, capsys: Capture) -> None:
    assert run([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--kafka" in text
    assert "--bootstrap-servers" in text


def test_a_misspelt_verb_is_recognised(capsys: Capture) -> None:
    assert "Did you mean 'inspect'?" in _refused(capsys, 2, "inspct", "ck")


def test_a_part_of_a_checkpoint_names_the_whole(tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.logs([0], [0]))
    err = _refused(capsys, 3, "inspect", tmp_path / "offsets")
    assert f"Give the whole checkpoint: {tmp_path}\n" in err


def test_a_driver_that_does_not_start_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def no_java(url: str, **_: object) -> object:
        raise OSError("Unable to load libjvm\ndlopen failed\ndlopen failed")

    monkeypatch.setattr("fsspec.core.url_to_fs", no_java)
    err = _refused(capsys, 3, "inspect", "hdfs://namenode/ck")
    assert "webhdfs://" in err
    assert "dlopen" not in err
    assert "Unable to load libjvm" in _refused(capsys, 3, "inspect", "other://ck")


@pytest.mark.parametrize("verb", ONE_CHECKPOINT)
def test_the_debugging_variable_shows_where(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from floodmark.errors import NotACheckpoint

    monkeypatch.setenv("FLOODMARK_DEBUG", "1")
    with pytest.raises(NotACheckpoint):
        run([verb, str(tmp_path)])


def test_a_bug_is_said_to_be_one(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall_over(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("floodmark.api.look", fall_over)
    assert run(["inspect", str(tmp_path)]) == 70
    err = capsys.readouterr().err
    assert "It is a bug" in err
    assert "FLOODMARK_DEBUG=1" in err
    assert "Traceback" not in err


WILD = {
    "far in the future": samples.offset_entry(1, "0").replace(
        str(samples.time_of(1)).encode(), b"9223372036854775807"
    ),
    "far in the past": samples.offset_entry(1, "0").replace(
        str(samples.time_of(1)).encode(), b"-9223372036854775808"
    ),
    "a watermark of the year 300000": samples.offset_entry(1, "0", watermark_ms=9 * 10**15),
    "a watermark ahead of its batch": samples.offset_entry(
        1, "0", watermark_ms=samples.time_of(1) + 5000
    ),
    "half a character": samples.offset_entry(1, '{"tag":"\\ud800"}'),
    "not a number": samples.offset_entry(1, '{"tag": NaN}'),
    "beyond a float": samples.offset_entry(1, '{"tag":1e999,"other":[-1e400]}'),
    "no metadata": b"v1\n\n0",
    "no source": samples.offset_entry(1),
    "a long text": samples.offset_entry(1, '{"tag":"' + "x" * 10_000 + '"}'),
}


@pytest.mark.parametrize("what", WILD)
@pytest.mark.parametrize("verb", ["inspect", "batches", "offsets"])
def test_wild_values_are_shown(verb: str, what: str, tmp_path: Path, capsys: Capture) -> None:
    samples.write(tmp_path, samples.logs([0, 1], [0, 1]) | {"offsets/1": WILD[what]})
    assert run([verb, str(tmp_path)]) == 0
    text = capsys.readouterr().out.replace(str(tmp_path), "")
    assert text
    assert "-5" not in text, "a span of time is never negative"
    assert run([verb, str(tmp_path), "--json"]) == 0
    json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


def test_every_verb_has_help(capsys: Capture) -> None:
    for group in VERBS.values():
        for verb in group:
            assert run([verb, "--help"]) == 0
            out, err = capsys.readouterr()
            assert out.startswith(f"Usage: floodmark {verb}")
            assert err == ""


_DAMAGES = {
    "sound": lambda tree: None,
    "no offsets": lambda tree: [tree.pop(path) for path in [*tree] if path.startswith("offsets/")],
    "no commits": lambda tree: [tree.pop(path) for path in [*tree] if path.startswith("commits/")],
    "torn": lambda tree: tree.update({"offsets/6": b"v1", "offsets/7": b"v1"}),
    "no state": lambda tree: [tree.pop(path) for path in [*tree] if path.startswith("state/0/1/")],
    "purged": lambda tree: [
        tree.pop(f"{log}/{n}") for log in ("offsets", "commits") for n in (0, 1)
    ],
}
_REFUSED = [
    "offsets --batch 99",
    "offsets --batch 0",
    "offsets --starting-offsets",
    "files",
    "files --source 5",
    "state --operator 5",
    "state --store left",
    "state --batch 99",
    "state --export rows.csv",
    "diff --batches 0..99",
    "rewind --to-batch 99",
    "rewind --to-batch 0",
    "rewind --to-batch 6",
    "upgrade {new} --from-batch 99",
    "upgrade {new} --from-batch 0",
    "upgrade {new}",
    "repartition {new} --partitions 3",
    "convert {new} --name 0",
    "convert {new} --provider rocksdb",
    "compact",
    "undo",
    "forget",
    "lag",
]


@pytest.mark.parametrize("damage", _DAMAGES)
@pytest.mark.parametrize("command", _REFUSED)
def test_a_command_that_an_error_names_can_be_pasted(
    command: str, damage: str, tmp_path: Path, capsys: Capture
) -> None:
    """It has the checkpoint that the user has named, in quotes where the shell wants them."""
    tree = samples.sales(8)
    _DAMAGES[damage](tree)
    place = samples.write(tmp_path / "my stream's", tree)
    verb, *rest = command.format(new="elsewhere").split()
    run([verb, str(place), *rest])
    err = capsys.readouterr().err
    named = re.findall("floodmark (?:batches|doctor|inspect|state|offsets|files|repair) (.*)", err)
    assert not re.search(r"floodmark [a-z-]+ CP\b", err)
    assert all(one.startswith(shlex.quote(str(place))) for one in named), err
