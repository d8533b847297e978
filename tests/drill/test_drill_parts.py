"""The parts of a drill that need no Spark: input, comparison, advice, doors, marks."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest

from floodmark import api
from floodmark.cli.main import run
from floodmark.drills.advice import DrilledSink, advice_for
from floodmark.drills.comparing import compare_sinks, point_result
from floodmark.drills.points import Point
from floodmark.engine.drill.aftermath import judge
from floodmark.engine.drill.given_input import inputs_of
from floodmark.engine.drill.line_server import LineServer
from floodmark.engine.drill.marks import HOLD, FunctionLog, Hold, Marks
from floodmark.engine.drill.run_spec import InputSample, RunSpec, SinkNote, read_spec
from floodmark.engine.drill.sink_rows import rows_of
from floodmark.errors import FloodmarkError, NotEmpty, WrongUse
from floodmark.testing import StreamUnderTest

ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}]
APP = """
from floodmark import pipeline

@pipeline(checkpoint="ck")
def one(spark, start):
    return None
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path


def test_equal_sinks_do_not_differ_whatever_their_order() -> None:
    assert not compare_sinks(ROWS, reversed(ROWS)).differ


def test_lost_repeated_and_wrong_rows_are_told_apart() -> None:
    found = compare_sinks(ROWS, [ROWS[0], ROWS[1], ROWS[1], {"id": 9, "v": "z"}, ROWS[1]])
    assert (found.lost, found.repeated, found.wrong) == (1, 2, 1)
    assert found.lost_rows == (ROWS[2],)
    assert found.repeated_rows == (ROWS[1],)
    assert found.wrong_rows == ({"id": 9, "v": "z"},)
    assert found.only_in == (), "lost and wrong rows have nothing in common"


def test_a_column_that_differs_from_run_to_run_is_named_and_ignored() -> None:
    before = [{**row, "at": number} for number, row in enumerate(ROWS)]
    after = [{**row, "at": number + 100} for number, row in enumerate(ROWS)]
    found = compare_sinks(before, after)
    assert (found.lost, found.wrong, found.only_in) == (3, 3, ("at",))
    result = point_result("after-sink", 1, {"out": found})
    (words,) = advice_for([result], [DrilledSink("out", "delta", "function")], ["kafka"])
    assert "--ignore at" in words
    assert not compare_sinks(before, after, ["at"]).differ
    assert compare_sinks(before, [*after, after[0]]).only_in == ("at",), "repeated rows hide it not"


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        (DrilledSink("out", "delta", "function"), "once.delta"),
        (DrilledSink("out", "sqlite", "function"), "once.sql"),
        (DrilledSink("out", "parquet", "function"), 'writeStream.format("parquet")'),
        (DrilledSink("out", "lines", "function"), "batch id into the path"),
        (DrilledSink("out", "delta", "spark"), "report it"),
    ],
)
def test_advice_names_what_mends_it(sink: DrilledSink, words: str) -> None:
    found = compare_sinks(ROWS, [*ROWS, ROWS[0]])
    (advice,) = advice_for([point_result("after-sink", 1, {"out": found})], [sink], ["json"])
    assert words in advice
    assert advice.startswith("out: ")


def test_a_survivor_gets_no_advice() -> None:
    result = point_result("after-sink", 1, {"out": compare_sinks(ROWS, ROWS)})
    assert result.survived
    assert not list(advice_for([result], [DrilledSink("out", "delta", "spark")], ["json"]))


def test_a_restart_that_fails_is_no_survival() -> None:
    result = point_result("after-offset", 1, {}, "the restart fails: offsets out of order")
    assert result.survived is False
    assert "out of order" in " ".join(advice_for([result], [], ["json"]))


def test_a_socket_is_to_blame_and_not_the_sink() -> None:
    lost = point_result("after-offset", 1, {"out": compare_sinks(ROWS, ROWS[:1])})
    (words,) = advice_for([lost], [DrilledSink("out", "parquet", "spark")], ["socket"])
    assert "non-replayable-source" in words


def test_inputs(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1.json").write_text("{}")
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(10)))
    given = [str(tmp_path / "files"), str(tmp_path / "rows.jsonl"), "kafka://h:9/t", "topic-1"]
    files, lines, there, own = inputs_of(given, tmp_path / "shared")
    assert files == InputSample("folder", str(tmp_path / "files"))
    portions = sorted(Path(lines.place).iterdir())
    assert [len(one.read_text().splitlines()) for one in portions] == [3, 3, 3, 1]
    assert (there, own) == (InputSample("topic", "t", "h:9"), InputSample("topic", "topic-1"))


@pytest.mark.parametrize(
    ("made", "given", "words"),
    [
        (None, "nothing/here", "no such folder or file"),
        (None, "rows.jsonl", "no such folder or file"),
        (None, "kafka://broker:9092", "kafka://HOST:PORT/TOPIC"),
        ("empty/", "empty", "has no files"),
        ("empty.jsonl", "empty.jsonl", "is empty"),
        ("bytes", "bytes", "is not text"),
    ],
)
def test_a_bad_sample_is_said_before_anything_runs(
    made: str | None, given: str, words: str, app: Path, tmp_path: Path
) -> None:
    if made and made.endswith("/"):
        (tmp_path / made).mkdir()
    elif made:
        (tmp_path / made).write_bytes(b"\xff\xfe\x00" if made == "bytes" else b"\n \n")
    place = given if "://" in given else str(tmp_path / given)
    with pytest.raises(WrongUse) as raised:
        api.drill(str(app), input=place)
    assert words in str(raised.value)


def test_what_is_refused_before_anything_runs(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n')
    rows = str(tmp_path / "rows.jsonl")
    with pytest.raises(NotEmpty, match="--scratch"):
        api.drill(str(app), input=rows, scratch=str(tmp_path))
    with pytest.raises(WrongUse, match="no such point"):
        api.drill(str(app), input=rows, point="before-lunch")
    with pytest.raises(WrongUse, match="not a PostgreSQL database"):
        api.drill(str(app), input=rows, sink="mysql://host/db")
    with pytest.raises(WrongUse, match="on one machine"):
        api.drill(str(app), input=rows, master="yarn")
    with pytest.raises(WrongUse, match="needs a sample"):
        api.drill(str(app), input=())
    with pytest.raises(FloodmarkError, match=r"gone\.py"):
        api.drill(str(tmp_path / "gone.py"), input=rows)
    assert run(["drill", str(app), "--input", str(tmp_path / "gone" / "x")]) == 2
    assert "there is no such folder or file" in capsys.readouterr().err
    assert run(["drill", str(app)]) == 2


def test_a_stream_refuses_what_makes_no_sense(app: Path, tmp_path: Path) -> None:
    stream = StreamUnderTest(app, tmp_path / "s")
    with pytest.raises(WrongUse, match="no rows"):
        stream.feed([])
    with pytest.raises(WrongUse, match="no source 1"):
        stream.feed([{"n": 1}], source=1)
    with pytest.raises(WrongUse, match="no point"):
        stream.kill(at="lunch")
    with pytest.raises(WrongUse, match="has not run"):
        stream.rows()


def test_a_run_is_told_by_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    spec = RunSpec(
        "a.py:x", str(tmp_path), "shared", (InputSample("topic", "t", "h:1"),), {"k": "v"}
    )
    path = spec.write()
    assert read_spec(path) == spec
    assert path.stat().st_mode & 0o077 == 0


def test_marks_tell_how_far_a_function_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setenv(HOLD, Hold(Point.DURING_SINK, 1, 2).text())
    for name in ("offsets/0", "offsets/1", "commits/0"):
        (tmp_path / "ck" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ck" / name).touch()
    (tmp_path / "ck" / "metadata").write_text('{"id": "q"}')
    marks, log = Marks(tmp_path), FunctionLog(tmp_path)
    assert judge(tmp_path / "ck", log, 3, 0.0).point is Point.AFTER_OFFSET
    marks.begin(1)
    marks.wrote()
    assert not waits
    assert judge(tmp_path / "ck", log, 3, 0.0).point is Point.DURING_SINK
    marks.wrote()
    assert len(waits) == 1, "held after the second write of batch 1"
    marks.done(1)
    assert judge(tmp_path / "ck", log, 3, 0.0).point is Point.AFTER_SINK
    assert log.told(1)[0] == 2


def test_a_line_server_gives_each_line_once(tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    for number in range(2):
        (tmp_path / "lines" / str(number)).write_text(f"line {number}\n")
    server = LineServer(tmp_path / "lines", tmp_path / "sent")
    try:
        with socket.create_connection(("127.0.0.1", server.port), 5) as reader:
            assert reader.recv(100) == b"line 0\n"
        deadline = time.monotonic() + 300
        with socket.create_connection(("127.0.0.1", server.port), 5) as reader:
            reader.settimeout(10)
            assert reader.recv(100) == b"line 1\n"
            while not (tmp_path / "sent").exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        server.close()


def test_a_write_that_died_midway_left_no_rows(tmp_path: Path) -> None:
    half = tmp_path / "out" / "_temporary" / "0" / "part-0.parquet"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    assert rows_of(None, SinkNote("out", str(tmp_path / "out"), "parquet")) == []
    assert rows_of(None, SinkNote("out", str(tmp_path / "none"), "delta")) == []


GUARDED = """
import os, posix, shutil, socket, sqlite3, subprocess, sys, tempfile, threading
from pathlib import Path
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.source import read_source
from floodmark.engine.drill.child import _EveryThread
from floodmark.engine.drill.file_doors import FileDoors
from floodmark.engine.drill.marks import Marks
from floodmark.engine.drill.places import Places
from floodmark.engine.drill.sql_doors import SqlDoors

run, real = Path(sys.argv[1]), Path(sys.argv[2])
patches = Patches()
places, marks = Places(run), Marks(run)
SqlDoors(places, marks, None).install(patches)
doors = FileDoors(places, marks, _EveryThread(read_source(Path(__file__))))
doors.install(patches)
doors.enabled = True
with open(real / "kept.txt", "a") as out:
    out.write("more\\n")
assert open(real / "kept.txt").read() == "real\\nmore\\n", "it reads what it wrote"
with sqlite3.connect(real / "kept.db") as connection:
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1,)
    connection.execute("INSERT INTO kept VALUES (2)")
os.makedirs(real / "new", exist_ok=True)
mine = run / 'tmp-file'
mine.write_text('run')
refused = []
for name, act in {
    "rmtree": lambda: shutil.rmtree(real),
    "rmdir": lambda: os.rmdir(real / "folder"),
    "system": lambda: os.system("true"),
    "popen": lambda: subprocess.run(["true"]),
    "connect": lambda: socket.create_connection(("127.0.0.1", 9), 1),
    "symlink": lambda: os.symlink(real, real / "link"),
    "low": lambda: os.open(real / "low", os.O_WRONLY | os.O_CREAT),
    "remove": lambda: os.remove(real / "kept.db"),
    "renamed-out": lambda: posix.rename(mine, real / "kept.txt"),
    "linked-out": lambda: os.link(mine, real / "new.txt"),
    "temporary": lambda: tempfile.mkstemp(dir=real),
    "root": lambda: os.open(f"/proc/self/root{real}/kept.txt", os.O_WRONLY),
    "database": lambda: sqlite3.Connection(real / "kept.db"),
    "mode": lambda: os.chmod(real / "kept.txt", 0o600),
    "time": lambda: os.utime(real / "kept.txt"),
}.items():
    try:
        act()
    except (PermissionError, FileNotFoundError):
        refused.append(name)
thread = threading.Thread(target=os.unlink, args=(str(real / "kept.txt"),))
thread.start()
thread.join()
assert sqlite3.connect(":memory:").execute("SELECT 1").fetchone() == (1,)
doors.enabled = False
print(*sorted(refused))
print(*sorted((note.kind for note in places.notes)))
"""


def test_python_code_cannot_reach_real_places(tmp_path: Path) -> None:
    real, own = tmp_path / "real", tmp_path / "run"
    (real / "folder").mkdir(parents=True)
    own.mkdir()
    (real / "kept.txt").write_text("real\n")
    with closing(sqlite3.connect(real / "kept.db")) as connection, connection:
        connection.execute("CREATE TABLE kept (n INTEGER)")
        connection.execute("INSERT INTO kept VALUES (1)")
    before = {str(one): one.is_file() and one.read_bytes() for one in real.rglob("*")}
    script = tmp_path / "guarded.py"
    script.write_text(textwrap.dedent(GUARDED))

    ended = subprocess.run(
        [sys.executable, str(script), str(own), str(real)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )

    assert ended.returncode == 0, ended.stderr
    refused, kinds = ended.stdout.splitlines()
    assert refused == (
        "connect database linked-out low mode popen remove renamed-out rmdir rmtree root symlink "
        "system temporary time"
    )
    assert kinds == "lines sqlite"
    assert {str(one): one.is_file() and one.read_bytes() for one in real.rglob("*")} == before
