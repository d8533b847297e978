"""Python code of a drilled pipeline cannot reach real places: no Spark."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

GUARDED = """
import os, posix, shutil, socket, sqlite3, subprocess, sys, tempfile, threading
from pathlib import Path
from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_text import read_source
from floodmark.engine.drill.child import _EveryThread
from floodmark.engine.drill.doors.file_doors import FileDoors
from floodmark.engine.drill.killing.marks import Marks
from floodmark.engine.drill.doors.places import Places
from floodmark.engine.drill.doors.sql_doors import SqlDoors
from floodmark.engine.drill.run_spec import SinkNote
from floodmark.errors import WrongUse

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
assert (real / "kept.txt").stat().st_size == os.path.getsize(real / "kept.txt") == 10
assert not (real / "marker-0").exists()
open(real / "marker-0", "w").close()
assert (real / "marker-0").exists() and os.access(real / "marker-0", os.R_OK)
assert sorted(os.listdir(real)) == ["folder", "kept.db", "kept.txt", "marker-0"]
assert os.listdir(run), "its own are listed as they are"
shutil.copy(real / "folder" / "template", real / "marker-1")
assert open(real / "marker-1").read() == "template"
os.remove(real / "marker-1")
assert not os.path.exists(real / "marker-1")
sink = run / "sinks" / "sink-1"
sink.mkdir(parents=True)
(sink / "part-0").write_text("of the run")
assert not (real / "sink").exists(), "Spark has not written there yet"
places.note(SinkNote(str(real / "sink"), str(sink), "json"))
assert (real / "sink" / "part-0").exists()
assert (real / "sink" / "part-0").read_text() == "of the run"
assert os.listdir(real / "sink") == ["part-0"]
assert [one.name for one in (real / "sink").glob("part-*")] == ["part-0"]
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
    "remove": lambda: os.remove(real / "folder" / "template"),
    "rename": lambda: os.rename(real / "folder" / "template", real / "marker-2"),
    "glob": lambda: list(real.glob("marker-*")),
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
    except (PermissionError, WrongUse):
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
    (real / "folder" / "template").write_text("template")
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
        "connect database glob linked-out low mode popen remove rename renamed-out rmdir "
        "rmtree root symlink system temporary time"
    )
    assert kinds == "json lines lines lines sqlite"
    assert {str(one): one.is_file() and one.read_bytes() for one in real.rglob("*")} == before
