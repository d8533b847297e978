"""Modules of scripts/, which is no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


def script(name: str, known_as: str | None = None) -> ModuleType:
    """`known_as` where a package of the tests has the script's name."""
    spec = importlib.util.spec_from_file_location(known_as or name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[known_as or name] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module
