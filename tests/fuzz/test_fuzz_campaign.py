"""Ten thousand damaged places through every verb; a million in `make soak`.

FLOODMARK_FUZZ_CASES and FLOODMARK_FUZZ_SEED choose how many, and which. Each failure names the
command that runs its case again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_commands import EVERY

from floodmark.cli.main import VERBS

# `deploy` reads no checkpoint: it writes a unit for `run`.
SPARK_ONLY = {"run", "deploy", "demo", "check", "migrate", "bootstrap"}
SPARK_ONLY |= {"replay", "compare", "drill", "leave-dstreams"}
# It listens until it is stopped; tests/web gives it odd places.
SPARK_ONLY |= {"serve"}


def _campaign(cases: int) -> None:
    """In a process of its own: the campaign forks, and this one may have threads."""
    cases = int(os.environ.get("FLOODMARK_FUZZ_CASES", cases))
    seed = os.environ.get("FLOODMARK_FUZZ_SEED", "2026")
    script = Path(__file__).with_name("fuzz_campaign.py")
    ended = subprocess.run(
        [sys.executable, str(script), str(cases), "--seed", seed],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout[-20_000:]
    told = re.search(
        r"(\d+) cases, \d+ mutations, (\d+) commands .*?(\d+) ended with 0", ended.stdout
    )
    assert told is not None
    assert int(told[1]) == cases
    # Many commands must have come through to an answer, or the campaign tries nothing.
    assert int(told[3]) > int(told[2]) // 4


def _every_value(part: str) -> None:
    script = Path(__file__).with_name("fuzz_leaves.py")
    ended = subprocess.run(
        [sys.executable, str(script), "--part", part],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-20_000:]
    told = re.search(r"(\d+) commands, 0 failures", ended.stdout)
    assert told is not None
    assert int(told[1]) > 1_000


def test_some_of_the_values_of_all_json_files_replaced() -> None:
    _every_value("7/31")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_value_of_all_json_files_replaced() -> None:
    _every_value("0/1")


def test_every_verb_that_needs_no_spark_is_tried() -> None:
    tried = {command.split(" ")[0] for command in EVERY}
    assert tried >= {verb for group in VERBS.values() for verb in group} - SPARK_ONLY


@pytest.mark.timeout(1800)
def test_ten_thousand_damaged_places() -> None:
    _campaign(10_000)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_million_damaged_places() -> None:
    _campaign(1_000_000)
