"""A command that takes longer than a second shows a sign of life, on a terminal alone."""

from __future__ import annotations

import re
import subprocess
import sys

from terminals import on_a_terminal

CODE = """
import sys, time
from floodmark.cli.main import _waiting
from floodmark.cli.text import echo
with _waiting("check"):
    time.sleep(float(sys.argv[1]))
    echo("done")
    time.sleep(float(sys.argv[2]))
"""


def waited(before: float, after: float) -> str:
    """Seconds until it is done, and from then on until its end."""
    return on_a_terminal([sys.executable, "-c", CODE, str(before), str(after)])


def test_after_a_second_it_is_shown_and_then_gone() -> None:
    text = waited(4, 0.4)
    assert re.search(r"check, [1-9] s\r", text)
    before, _, after = text.partition("done")
    assert before.endswith("\r\x1b[K")
    assert after.strip() == ""


def test_a_quick_command_shows_nothing() -> None:
    assert waited(0, 0).strip() == "done"


def test_elsewhere_nothing_is_written() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, "1.4", "0"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
