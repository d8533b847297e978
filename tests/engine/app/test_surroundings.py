"""Old and new code in one process: neither sees what the other imported or set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.script_text import read_source
from floodmark.engine.app.surroundings import at_home, surroundings
from floodmark.engine.pipelines.application import import_application

OUTSIDE = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from shared_rates import RATE
"""
APPENDED = OUTSIDE.replace("insert(0, ", "append(")
WITHOUT_INIT = "from rates_folder import shared_rates\nRATE = shared_rates.RATE\n"
OF_THE_ENVIRONMENT = (
    "import os\nRATE = int(os.environ.setdefault('FLOODMARK_TEST_RATE', '{rate}'))\n"
)
OF_THE_FOLDER = (
    "import os\nif not os.path.exists('rate-{rate}'):\n"
    "    os.chdir(os.path.dirname(os.path.abspath(__file__)))\n"
    "RATE = next(int(name[5:]) for name in os.listdir() if name.startswith('rate-'))\n"
)


def _written(root: Path, text: str, rate: int) -> Path:
    """A script in a folder of its own, with a module in each place that it may import from."""
    jobs = root / "jobs"
    (jobs / "rates_folder").mkdir(parents=True)
    (jobs / f"rate-{rate}").touch()
    for place in (root, jobs / "rates_folder"):
        (place / "shared_rates.py").write_text(f"RATE = {rate}\n")
    script = jobs / "app.py"
    script.write_text(text.replace("{rate}", str(rate)))
    return script


def _run(script: Path) -> Iterator[int]:
    source = read_source(script)
    with at_home(source, ScriptOptions()) as module:
        exec(source.compiled(), vars(module))
        yield vars(module)["RATE"]


@pytest.mark.parametrize(
    "text", [OUTSIDE, APPENDED, WITHOUT_INIT, OF_THE_ENVIRONMENT, OF_THE_FOLDER]
)
def test_old_code_does_not_get_what_new_code_has_made(tmp_path: Path, text: str) -> None:
    new, old = (_written(tmp_path / name, text, rate) for name, rate in (("new", 3), ("old", 2)))
    path, environment = list(sys.path), dict(os.environ)
    outer = _run(new)
    assert next(outer) == 3
    mine = sys.modules.get("shared_rates")
    inner = _run(old)
    assert next(inner) == 2
    inner.close()
    assert sys.modules.get("shared_rates") is mine
    outer.close()
    assert not {"shared_rates", "rates_folder", "rates_folder.shared_rates"} & set(sys.modules)
    assert (sys.path, dict(os.environ)) == (path, environment)


def test_pipelines_have_their_own_modules_as_well(tmp_path: Path) -> None:
    new, old = (
        _written(tmp_path / name, "from rates_folder.shared_rates import RATE\n", rate)
        for name, rate in (("new", 3), ("old", 2))
    )
    with surroundings((str(new.parent),)):
        assert vars(import_application(new))["RATE"] == 3
        with surroundings((str(old.parent),)):
            assert vars(import_application(old))["RATE"] == 2
        assert sys.modules["rates_folder.shared_rates"].RATE == 3
    assert "rates_folder" not in sys.modules
