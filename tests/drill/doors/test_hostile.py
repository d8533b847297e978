"""Each known way out of a drill is refused, or ends in the run's own folder."""

from __future__ import annotations

import platform
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from floodmark.testing import StreamUnderTest

HERE = Path(__file__).parent
_FENCE = (
    "from floodmark.engine.drill.doors.write_fence import let_write_only_below as fence; "
    "import sys; from pathlib import Path; print(fence([Path(sys.argv[1])]))"
)
BY_THE_KERNEL = {"libc.unlink", "libc.rename", "Java's reflection"}
"""Nothing else stands there."""


def contents(base: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(base.rglob("*"))
    }


@pytest.mark.spark
def test_each_way_out_is_closed(tmp_path: Path) -> None:
    app, base = tmp_path / "app" / "hostile.py", tmp_path / "user"
    app.parent.mkdir()
    # Beside this test it would be a part of the tests, and not the user's code.
    shutil.copy(HERE / "hostile.py", app)
    (base / "real" / "folder").mkdir(parents=True)
    (base / "real" / "kept.txt").write_text("real")
    with closing(sqlite3.connect(base / "real" / "kept.db")) as connection, connection:
        connection.execute("CREATE TABLE kept (n INTEGER)")
        connection.execute("INSERT INTO kept VALUES (1)")
    before = contents(base)
    fence = subprocess.run(
        [sys.executable, "-c", _FENCE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stream = StreamUnderTest(app, tmp_path / "run", arguments=[str(base), str(port)])
        stream.feed([{"n": 1}])

        stream.run()

        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    told = [row["line"] for row in stream.rows(sink="told.txt")]
    if fence.stdout.strip() != "True":  # its kernel has none: these harm the real file
        assert platform.system() != "Linux" or "True" not in fence.stdout
        pytest.skip("this kernel has no Landlock, or one before 5.19")
    print("\n".join(told))
    assert len(told) > 50, told
    assert [line for line in told if line.endswith(": done")] == []
    assert {line.partition(":")[0] for line in told} >= BY_THE_KERNEL
    # A wrong name in the script would look like a refusal.
    wrong = ("NameError", "AttributeError", "TypeError", "ImportError", "ModuleNotFoundError")
    assert [line for line in told if line.partition(": ")[2].startswith(wrong)] == []
    assert contents(base) == before
