"""What keeps a drilled pipeline from real places: the kernel, hooks of workers, targets of SQL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from floodmark.engine.drill.doors.outside import Outside
from floodmark.engine.drill.doors.spark_doors import _TARGET
from floodmark.engine.drill.doors.worker_daemon import refuse
from floodmark.errors import NoAnswer, WrongUse

FENCED = """
import os, subprocess, sys
from pathlib import Path
from floodmark.engine.drill.doors.write_fence import let_write_only_below

own, real = Path(sys.argv[1]), Path(sys.argv[2])
if not let_write_only_below([own]):
    print("no fence")
    sys.exit(0)
(own / "a").mkdir()
(own / "mine").write_text("run")
(own / "mine").rename(own / "a" / "mine")
os.link(own / "a" / "mine", own / "again")
Path("/dev/null").write_text("nothing")
assert (real / "kept").read_text() == "real", "reading is free"
done = []
for name, act in {
    "write": lambda: (real / "kept").write_text("gone"),
    "remove": lambda: (real / "kept").unlink(),
    "make": lambda: (real / "new").mkdir(),
    "rename": lambda: (own / "again").rename(real / "again"),
    "link": lambda: os.symlink(own, real / "link"),
    "program": lambda: subprocess.run(["rm", str(real / "kept")], check=True, stderr=-3),
    "through a link": lambda: (own / "link").symlink_to(real) or (own / "link/kept").write_text(""),
}.items():
    try:
        act()
        done.append(name)
    except (OSError, subprocess.CalledProcessError):
        pass
print("refused all" if not done else done)
"""


def test_the_kernel_lets_nobody_write_outside(tmp_path: Path) -> None:
    own, real = tmp_path / "own", tmp_path / "real"
    own.mkdir()
    real.mkdir()
    (real / "kept").write_text("real")
    ended = subprocess.run(
        [sys.executable, "-c", FENCED, str(own), str(real)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    if ended.stdout.strip() == "no fence":
        pytest.skip("this kernel has no Landlock, or one before 5.19")
    assert ended.stdout.strip() == "refused all"
    assert [one.name for one in real.iterdir()] == ["kept"]
    assert (real / "kept").read_text() == "real"


def test_functions_over_rows_do_not_connect_or_write(tmp_path: Path) -> None:
    with pytest.raises(PermissionError, match=r"does not carry this out: socket\.connect"):
        refuse("socket.connect", (None, ("db", 5432)))
    with pytest.raises(PermissionError, match="open"):
        refuse("open", ("/real/sink", "w", 1))
    refuse("open", ("/real/sink", "r", 0))
    refuse("import", ("os",))


WRITING = """
import sys
from floodmark.engine.drill.doors.worker_daemon import refuse

sys.addaudithook(refuse)
try:
    open(sys.argv[1], "w")
except PermissionError as error:
    print(error)
"""


def test_the_first_file_of_a_worker_is_refused_at_once(tmp_path: Path) -> None:
    """tempfile has a lock, under which it writes: asked in the hook, it would wait for itself."""
    ended = subprocess.run(
        [sys.executable, "-c", WRITING, "/nowhere/sink"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "does not carry this out: open /nowhere/sink" in ended.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO delta.`/sink` SELECT * FROM delta.`/other`",
        "insert overwrite table delta.`/sink` VALUES (1)",
        "MERGE INTO delta.`/sink` t USING b ON t.k = b.k WHEN MATCHED THEN DELETE",
        "DELETE FROM delta.`/sink` WHERE k = 1",
        "\n UPDATE delta.`/sink` SET k = 1",
    ],
)
def test_the_table_that_a_statement_changes_is_seen(statement: str) -> None:
    found = _TARGET.match(statement)
    assert found is not None
    assert found[1] == "/sink"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OVERWRITE DIRECTORY '/sink' USING parquet SELECT * FROM delta.`/other`",
        "CREATE TABLE t USING delta LOCATION '/sink' AS SELECT * FROM delta.`/other`",
        "INSERT INTO delta . `/sink` SELECT * FROM delta.`/other`",
        "/* */ INSERT INTO t SELECT * FROM delta.`/other`",
        "BEGIN INSERT INTO delta.`/sink` VALUES (1); END",
    ],
)
def test_another_target_beside_a_path_is_refused(statement: str) -> None:
    assert _TARGET.match(statement) is None


def _fails() -> None:
    raise WrongUse("no", "because", "so")


def test_what_is_done_outside_answers_or_says_why(tmp_path: Path) -> None:
    outside = Outside({"double": lambda n: 2 * n, "fail": _fails})
    assert outside("double", 21) == 42
    with pytest.raises(NoAnswer) as raised:
        outside("fail")
    assert (raised.value.what, raised.value.do) == ("no", "so")
