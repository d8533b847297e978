"""Content that nobody thought of: a sentence and the right exit status, never exit 70."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import samples
from floodmark.checkpoint.text import json_text
from floodmark.cli.main import run

GOLDEN = Path(__file__).parents[1] / "golden"
Capture = pytest.CaptureFixture[str]
LONG_AGO = 1_700_000_000
HALF = "\\ud800"
"""Half of a surrogate pair, as JSON writes it: UTF-8 has no bytes for it."""


def _golden(tmp_path: Path, name: str) -> Path:
    shutil.copytree(GOLDEN / name / "checkpoint", tmp_path / "cp")
    return tmp_path / "cp"


def _replace(folder: Path, pattern: str, old: str, new: str) -> None:
    found = [path for path in folder.glob(pattern) if path.is_file()]
    assert any(old in path.read_text() for path in found)
    for path in found:
        path.write_text(path.read_text().replace(old, new))
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def _rest(folder: Path) -> None:
    """As a checkpoint whose query has stopped long ago."""
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def _ends(capsys: Capture, *arguments: object) -> tuple[int, str]:
    status = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert status != 70, err
    assert "Traceback" not in err
    return status, out + err


def test_a_join_whose_schema_is_missing(tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.1/join")
    shutil.rmtree(folder / "state/0/0/right-keyToNumValues/_metadata")
    for options in ([], ["--state"]):
        status, told = _ends(capsys, "diff", folder, "--batches", "0..1", *options)
        assert status == 1, "the rest is compared"
        assert "the schema of right-keyToNumValues is missing" in told


def test_a_join_whose_store_is_missing(tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.0/join-v1")
    shutil.rmtree(folder / "state/0/0/left-keyToNumValues")
    status, told = _ends(capsys, "state", folder)
    assert status == 3
    assert "left-keyToNumValues is missing" in told
    assert "--store left-keyWithIndexToValue" in told
    assert _ends(capsys, "state", folder, "--store", "left-keyToNumValues")[0] == 3


@pytest.mark.parametrize(
    "command",
    [
        ["rewind", "{cp}", "--to-batch", "0"],
        ["upgrade", "{cp}", "{new}", "--new-identity"],
        ["copy", "{cp}", "{new}", "--new-identity"],
    ],
    ids=lambda command: command[0],
)
def test_half_a_character_in_the_query_id(
    command: list[str], tmp_path: Path, capsys: Capture
) -> None:
    folder = _golden(tmp_path, "4.2/sales-hdfs")
    (folder / "metadata").write_text(f'{{"id":"{HALF}"}}')
    (folder / ".metadata.crc").unlink(missing_ok=True)
    _rest(folder)
    names = {"cp": str(folder), "new": str(tmp_path / "new")}
    status, _ = _ends(capsys, *(part.format(**names) for part in command))
    assert status in (0, 3, 4)


def test_half_a_character_in_a_seen_file(tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.2/in-flight")
    entry = folder / "sources/0/1"
    version, line = entry.read_text().split("\n", 1)
    changed = json.dumps({**json.loads(line), "path": "file:///\ud800"})
    entry.write_text(f"{version}\n{changed}")
    (folder / "sources/0/.1.crc").unlink(missing_ok=True)
    _rest(folder)
    new = tmp_path / "new"
    assert _ends(capsys, "upgrade", folder, new, "--without-state")[0] in (0, 1, 3, 4)


@pytest.mark.parametrize(
    "options", [["convert", "--provider", "rocksdb"], ["repartition", "--partitions", "3"]]
)
def test_half_a_character_in_a_setting(options: list[str], tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.2/sales-hdfs")
    pinned = '"spark.sql.shuffle.partitions":"2"'
    _replace(folder, "offsets/[0-9]*", pinned, f'{pinned},"x":"{HALF}"')
    _rest(folder)
    verb, *rest = options
    assert _ends(capsys, verb, folder, tmp_path / "new", *rest)[0] in (0, 4)
    status, told = _ends(capsys, verb, folder, tmp_path / "new", *rest, "--execute")
    assert status in (0, 4), told


def test_half_a_character_in_an_operators_name(tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.2/windowed")
    path = folder / "state/0/_metadata/metadata"
    name = json.loads(path.read_text().split("\n")[1])["operatorInfo"]["operatorName"]
    _replace(folder, "state/0/_metadata/metadata", f'"{name}"', f'"{HALF}"')
    _rest(folder)
    new = tmp_path / "new"
    assert _ends(capsys, "inspect", folder)[0] == 0
    assert _ends(capsys, "repartition", folder, new, "--partitions", "3")[0] in (0, 4)


@pytest.mark.parametrize("verb", ["copy", "upgrade"])
def test_a_schema_path_that_is_no_text(verb: str, tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.3/join-v3")
    path = folder / "state/0/_metadata/v2/0"
    version, line = path.read_text().split("\n", 1)
    fields = json.loads(line)
    fields["stateStoreInfo"][0]["stateSchemaFilePaths"] = [{}]
    path.write_text(f"{version}\n{json.dumps(fields)}")
    (path.parent / ".0.crc").unlink(missing_ok=True)
    _rest(folder)
    status, told = _ends(capsys, verb, folder, tmp_path / "new")
    assert status == 3
    assert "the schema paths are" in told


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff", b"5"])
@pytest.mark.parametrize(
    "path", ["starts/1.json", "journal/0123456789abcdef.json", "lease.json", "start.json"]
)
def test_notes_that_are_nothing(path: str, raw: bytes, tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.2/files")
    target = folder / "_floodmark" / path
    target.parent.mkdir(parents=True)
    target.write_bytes(raw)
    _rest(folder)
    for command in (
        ["inspect", folder],
        ["doctor", folder],
        ["rewind", folder, "--to-batch", "0"],
        ["compact", folder],
        ["undo", folder],
        ["forget", folder],
    ):
        status, told = _ends(capsys, *command)
        assert status in (0, 1, 3, 4), told


@pytest.mark.parametrize("mode", [None, 5, [], {}, "\ud800"])
def test_an_output_mode_that_is_none(mode: object, tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.2/files")
    note = {"floodmark": "start-note", "version": 1, "sink": "parquet", "output_mode": mode}
    (folder / "_floodmark/starts").mkdir(parents=True)
    (folder / "_floodmark/starts/1.json").write_text(json.dumps(note))
    _rest(folder)
    for verb in ("repair", "compact", "doctor"):
        assert _ends(capsys, verb, folder)[0] in (0, 1, 4)


def test_a_seen_file_that_lost_a_slash_does_not_make_repair_walk_the_disk(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _golden(tmp_path, "4.2/files")
    _replace(folder, "sources/0/10", "file:///", "file://")
    torn = folder / "sources/0/11"
    torn.write_bytes(torn.read_bytes()[:40])
    (folder / "sources/0/.11.crc").unlink(missing_ok=True)
    _rest(folder)
    listed: list[str] = []
    scandir = os.scandir

    def watched(path: object = ".") -> object:
        listed.append(
            str(Path(f"/proc/self/fd/{path}").readlink()) if isinstance(path, int) else str(path)
        )
        return scandir(path)  # type: ignore[call-overload]

    monkeypatch.setattr("floodmark.storage.local.os.scandir", watched)
    status, told = _ends(capsys, "repair", folder)
    assert status in (0, 1, 4), told
    assert all(path.startswith(str(tmp_path)) for path in listed), listed


@pytest.mark.parametrize("index", [[1], {}, None, "x", 2**70])
def test_an_index_of_a_delta_offset_that_is_no_number(
    index: object, tmp_path: Path, capsys: Capture
) -> None:
    folder = _golden(tmp_path, "4.2/delta")
    entry = folder / "offsets/1"
    *head, line = entry.read_text().split("\n")
    entry.write_text("\n".join([*head, json.dumps({**json.loads(line), "index": index})]))
    (folder / "offsets/.1.crc").unlink(missing_ok=True)
    for verb in ("batches", "inspect", "offsets"):
        assert _ends(capsys, verb, folder)[0] in (0, 1, 3)


@pytest.mark.parametrize("depth", [199, 201, 450, 900])
@pytest.mark.parametrize("signs", [("[", "]"), ('{"a":', "}")])
def test_an_offset_that_is_nested_deeply(
    signs: tuple[str, str], depth: int, tmp_path: Path, capsys: Capture
) -> None:
    """Read without complaint, and too deep for whoever goes through it."""
    folder = _golden(tmp_path, "4.2/rate")
    entry = folder / "offsets/1"
    *head, _ = entry.read_text().split("\n")
    entry.write_text("\n".join([*head, signs[0] * depth + "1" + signs[1] * depth]))
    (folder / "offsets/.1.crc").unlink(missing_ok=True)
    for verb in (["offsets", "--batch", "1", "--json"], ["batches", "--json"], ["inspect"]):
        assert _ends(capsys, verb[0], folder, *verb[1:])[0] in (0, 1, 3)


def test_json_of_half_a_character_is_json_again() -> None:
    value = {"a": "\ud800", "é": "\udcff😀"}
    text = json_text(value)
    assert json.loads(text.encode()) == value
    assert "é" in text
    assert "😀" in text


def _commits_alone(folder: Path) -> None:
    shutil.rmtree(folder / "offsets")


def _linked_offsets(folder: Path) -> None:
    (folder / "offsets").rename(folder.parent / "offsets")
    (folder / "offsets").symlink_to(folder.parent / "offsets")


def _broken_newest(folder: Path) -> None:
    newest = max((folder / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.write_bytes(b"v1\n{")


@pytest.mark.parametrize("lose", [_commits_alone, _linked_offsets, _broken_newest])
@pytest.mark.parametrize("verb", ["check", "outline", "lag", "compact", "offsets"])
def test_a_used_checkpoint_whose_position_is_lost_is_not_a_new_one(
    verb: str, lose: Callable[[Path], None], tmp_path: Path, capsys: Capture
) -> None:
    # A new checkpoint fits any code: `check` answered "same" here.
    folder = _golden(tmp_path, "4.2/dedup")
    _rest(folder)
    lose(folder)
    application = ["app.py"] if verb == "check" else []
    status, told = _ends(capsys, verb, folder, *application)
    assert status in (1, 3)
    assert "no batch was planned yet" not in told
    assert f"floodmark doctor {folder}" in told or "is a link" in told, "the command can be pasted"


@pytest.mark.parametrize("field", ["reservoirVersion", "index", "sourceVersion", "logOffset"])
def test_an_offset_that_its_source_cannot_read_is_damage_for_every_verb(
    field: str, tmp_path: Path, capsys: Capture
) -> None:
    delta = json.loads(samples.DELTA_OFFSET) | {field: "8"}
    offset = json_text({field: "8"} if field == "logOffset" else delta, separators=(",", ":"))
    samples.write(tmp_path, samples.logs([0, 1], [0], lambda _: offset))
    status, told = _ends(capsys, "inspect", tmp_path, "--json")
    assert [one["path"] for one in json.loads(told)["unreadable"]] == ["offsets/0", "offsets/1"]
    assert _ends(capsys, "doctor", tmp_path)[0] == 1
    status, told = _ends(capsys, "offsets", tmp_path)
    assert status == 3
    assert f"{field} is '8', not a whole number" in told
    assert f"floodmark doctor {tmp_path}" in told
    assert _ends(capsys, "upgrade", tmp_path, f"{tmp_path}-new")[0] == 3


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links here")
def test_the_doctor_tells_what_makes_every_change_refuse(tmp_path: Path, capsys: Capture) -> None:
    folder = _golden(tmp_path, "4.2/dedup")
    _rest(folder)
    (tmp_path / "elsewhere").mkdir()
    (folder / "_floodmark").symlink_to(tmp_path / "elsewhere")
    assert _ends(capsys, "upgrade", folder, tmp_path / "new")[0] == 3
    status, told = _ends(capsys, "doctor", folder)
    assert status == 1
    assert "_floodmark was not examined" in told


@pytest.mark.parametrize("path", ["journal/1.json", "lease.json", "epochs/3.json"])
def test_the_doctor_tells_of_an_unreadable_file_of_floodmarks_own(
    path: str, tmp_path: Path, capsys: Capture
) -> None:
    folder = _golden(tmp_path, "4.2/dedup")
    own = folder / "_floodmark" / path
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    if "journal" not in path:
        os.truncate(own, 2 << 20)  # one that is no lease holds nothing, and is no fault
    _rest(folder)
    assert _ends(capsys, "upgrade", folder, tmp_path / "new", "--execute")[0] == 3
    status, told = _ends(capsys, "doctor", folder)
    assert status == 1
    assert f"_floodmark/{path} cannot be read" in " ".join(told.split())
    own.write_text("{}")
    if "journal" not in path:
        assert _ends(capsys, "doctor", folder)[0] == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize(
    "command",
    [
        ["lint", "{code}"],
        ["check", "{cp}", "{code}"],
        ["upgrade", "{cp}", "{new}", "--app", "{code}"],
        ["migrate", "{cp}", "{new}", "--app", "{good}", "--with", "{code}"],
        ["run", "{good}", "--start", "{code}"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("kind", ["device", "pipe", "sparse"])
def test_code_without_an_end(
    kind: str, command: list[str], tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("pyspark")
    code, good = tmp_path / "code.py", tmp_path / "good.py"
    good.write_text("")
    if kind == "device":
        code.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(code)
    else:
        code.touch()
        os.truncate(code, 1 << 40)
    names = {"cp": str(_golden(tmp_path, "4.2/dedup")), "new": str(tmp_path / "new")}
    names |= {"code": str(code), "good": str(good)}
    status, told = _ends(capsys, *(part.format(**names) for part in command))
    assert status == (3 if kind == "sparse" else 2), told
    assert ("more than is read" if kind == "sparse" else "device or a pipe") in told


@pytest.mark.parametrize("command", ["outline {cp}", "upgrade {cp} {new}"])
def test_no_result_is_written_into_a_checkpoint(
    command: str, tmp_path: Path, capsys: Capture
) -> None:
    folder = _golden(tmp_path, "4.2/dedup")
    words = command.format(cp=folder, new=tmp_path / "new").split()
    for inside in ("offsets/9", "x.json", "../cp/commits/9"):
        status, told = _ends(capsys, *words, "--out", folder / inside)
        assert status == 2
        assert "lies inside of" in told
        assert not (folder / inside).exists()


def test_an_empty_path_is_not_the_current_folder(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_golden(tmp_path, "4.2/dedup"))
    for command in (["compact", ""], ["upgrade", "", tmp_path / "new"], ["undo", ""]):
        status, told = _ends(capsys, *command)
        assert status == 2
        assert "the path is empty" in told


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300"])
@pytest.mark.parametrize("command", ["watch --interval", "lag --timeout", "compact --wait"])
def test_a_time_that_no_clock_has(
    command: str, seconds: str, tmp_path: Path, capsys: Capture
) -> None:
    verb, option = command.split()
    status, told = _ends(capsys, verb, _golden(tmp_path, "4.2/dedup"), option, seconds)
    assert status == 2
    assert "is not a number of seconds" in " ".join(told.split())


_DEEP = "[" * 5_000


@pytest.mark.parametrize(
    "options",
    [
        ("state", "CP", "--key", _DEEP),
        ("inspect", "CP", "--storage", f"a={_DEEP}"),
        ("repair", "CP", "--out", _DEEP),
        ("diff", "CP", "--batches", f"0..{'9' * 5_000}"),
    ],
    ids=lambda options: options[0],
)
def test_an_option_that_is_deep_or_long_is_wrong_use(
    options: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    samples.write(tmp_path, samples.logs([0, 1], [0]))
    status, _ = _ends(capsys, *(str(tmp_path) if one == "CP" else one for one in options))
    assert status in (0, 2)


def test_a_plan_that_cannot_be_saved_is_not_executed(tmp_path: Path, capsys: Capture) -> None:
    """Python 3.14 says of a name that is too long that it is no folder, and raises nothing."""
    stream = tmp_path / "stream"
    samples.write(stream, samples.logs([0, 1], [0, 1]))
    (stream / "commits/1").write_bytes(b"")
    status, told = _ends(capsys, "repair", stream, "--out", tmp_path / ("p" * 300), "--execute")
    assert status == 2
    assert "cannot be written" in told
    assert (stream / "commits/1").read_bytes() == b""


@pytest.mark.parametrize("name", ["p" * 300 + ".py", "plain/p.py", "nowhere.py"])
def test_lint_of_a_path_that_no_file_can_have(name: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "plain").write_text("a file")
    status, told = _ends(capsys, "lint", tmp_path / name)
    assert status == 3
    assert name in told


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file here")
def test_offsets_from_a_file_without_an_end(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOODMARK_LIMITS", "plan=2M")
    samples.write(tmp_path, samples.logs([0, 1], [0]))
    status, told = _ends(capsys, "rewind", tmp_path, "--to-offsets", "/dev/zero")
    assert status == 3
    assert "more than is read" in told
