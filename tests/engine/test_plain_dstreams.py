"""A plain script that starts DStreams is refused before they start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from floodmark.cli.main import run

SCRIPT = """
{first}
from pyspark.streaming import StreamingContext

open("reached", "w").close()
context = object.__new__(StreamingContext)  # as if it were built: none of it is touched
try:
    context.start()
finally:
    open("ended", "w").close()
open("went_on", "w").close()
"""


@pytest.mark.parametrize("way", ["run", "auto"])
def test_a_context_of_a_script_does_not_start(
    way: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "sales.py"
    script.write_text(SCRIPT.format(first="import floodmark.auto" if way == "auto" else ""))
    if way == "run":
        assert run(["run", str(script)]) == 4
        told = capfd.readouterr().err
        assert told.startswith("Refused: ")
    else:
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 1
        told = done.stderr
    assert "sales.py starts DStreams (StreamingContext.start)" in told
    assert "@dstream(checkpoint=" in told
    assert (tmp_path / "reached").exists()
    assert not (tmp_path / "went_on").exists()


def test_a_script_that_catches_the_refusal_is_refused_all_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "sales.py"
    script.write_text(
        "from pyspark.streaming import StreamingContext\n"
        "try:\n    object.__new__(StreamingContext).start()\n"
        "except Exception:\n    pass\n"
    )
    assert run(["run", str(script)]) == 4
    assert "starts DStreams" in capfd.readouterr().err
