"""README's commands work in the order in which they stand, on what the demonstration left."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demonstration import MAIN, Demo

ROOT = Path(__file__).parents[1]
# The fixture has run the one, and this is part of the other.
MAKE = ["make demo", "make test"]
# Placeholders: what they name, a reader has or has not.
ELSEWHERE = "data/old-checkpoint"
STARTS_SPARK = ("run", "check")


def commands() -> Iterator[str]:
    """Each line after `$` in a console block."""
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    for block in blocks:
        yield from re.findall(r"^\$ (.+)$", block, re.M)


def test_the_demonstration_comes_first() -> None:
    assert list(commands())[: len(MAKE)] == MAKE


def walk(demo: Demo, chosen: list[str]) -> None:
    assert demo.status == 0, demo.err
    shutil.copytree(ROOT / "examples", demo.cwd / "examples", dirs_exist_ok=True)
    for command in chosen:
        program, *arguments = shlex.split(command)
        assert program in ("floodmark", "cp"), command
        whole = [sys.executable, "-c", MAIN] if program == "floodmark" else [program]
        done = subprocess.run(
            [*whole, *arguments],
            cwd=demo.cwd,
            capture_output=True,
            text=True,
            timeout=480,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def after_the_demonstration() -> list[str]:
    return [command for command in list(commands())[len(MAKE) :] if ELSEWHERE not in command]


@pytest.mark.spark
def test_what_reads_and_plans_works_on_what_the_demonstration_left(demo: Demo) -> None:
    chosen = [
        command
        for command in after_the_demonstration()
        if command.startswith("floodmark") and command.split()[1] not in STARTS_SPARK
    ]
    assert len(chosen) >= 6
    walk(demo, chosen)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_they_all_work_one_after_another(demo: Demo) -> None:
    walk(demo, after_the_demonstration())
