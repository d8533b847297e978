"""Functions that import modules, and functions that are called by the names of parameters."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from floodmark.engine.code.digests.python_code import function_digest

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module beside the application, where a worker would import it from."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()

    return put


def _digest(text: str, by_name: bool = False, **names: Any) -> str:
    found: dict[str, Any] = {"__name__": "app", **names}
    exec(text, found)
    return function_digest(found["size"], by_name)


_INSIDE = "def size(n):\n    import units_beside\n    return units_beside.scaled(n)\n"
_FROM = "def size(n):\n    from units_beside import scaled\n    return scaled(n)\n"
_BY_TEXT = (
    "def size(n):\n    from importlib import import_module\n"
    "    return import_module('units_beside').scaled(n)\n"
)
_DOTTED = "def size(n):\n    import kit.units as units\n    return units.scaled(n)\n"
_NAMED = "def size(n):\n    from kit import units\n    return units.scaled(n)\n"
_SCALED = "def scaled(n):\n    return n * 2\n"


@pytest.mark.parametrize("text", [_INSIDE, _FROM, _BY_TEXT])
def test_a_module_that_a_function_imports_is_part_of_it(write: Write, text: str) -> None:
    write("units_beside.py", _SCALED)
    first = _digest(text)
    write("units_beside.py", f'"""Units."""\n\n# As they were.\n{_SCALED}')
    assert _digest(text) == first
    write("units_beside.py", _SCALED.replace("2", "3"))
    assert _digest(text) != first
    assert "units_beside" not in sys.modules


@pytest.mark.parametrize("text", [_DOTTED, _NAMED])
def test_a_module_of_a_package_is_part_of_it(write: Write, text: str) -> None:
    write("kit/__init__.py", "")
    write("kit/units.py", f"from .numbers import FACTOR\n{_SCALED.replace('2', 'FACTOR')}")
    write("kit/numbers.py", "FACTOR = 2\n")
    first = _digest(text)
    assert _digest(text) == first
    write("kit/numbers.py", "FACTOR = 3\n")
    assert _digest(text) != first


def test_a_module_that_is_loaded_counts_by_its_file(write: Write) -> None:
    """A worker imports it anew, and does not get what this process has loaded."""
    write("units_loaded.py", _SCALED)
    text = _INSIDE.replace("units_beside", "units_loaded")
    importlib.import_module("units_loaded")
    first = _digest(text)
    write("units_loaded.py", _SCALED.replace("2", "3"))
    assert _digest(text) != first


def test_a_module_that_a_function_was_given_is_part_of_it(write: Write) -> None:
    text = (
        "def made(units):\n    def size(n):\n        return units.scaled(n)\n    return size\n"
        "import units_given\nsize = made(units_given)\n"
    )
    write("units_given.py", _SCALED)
    first = _digest(text)
    assert _digest(text) == first
    write("units_given.py", _SCALED.replace("2", "3"))
    assert _digest(text) != first


def test_a_module_that_is_not_found_is_never_called_the_same() -> None:
    text = "def size(n):\n    import no_such_module_anywhere\n    return n\n"
    first, second = _digest(text), _digest(text)
    assert first != second
    assert "not compared: no module no_such_module_anywhere" in first


def test_python_s_own_modules_are_known_by_name() -> None:
    text = "def size(n):\n    import json, pandas\n    return json.dumps(n)\n"
    assert _digest(text) == _digest(text)


_LESS = "def size(a, b):\n    return a - b\n"
_TURNED = "def size(b, a):\n    return b - a\n"
_INNER = "def size(x, y):\n    return less(a=x, b=y)\n"


def test_names_of_parameters_count_where_a_call_has_them() -> None:
    assert _digest(_LESS) == _digest(_TURNED)
    assert _digest(_LESS, by_name=True) != _digest(_TURNED, by_name=True)
    inner = [one.replace("size", "less") + _INNER for one in (_LESS, _TURNED)]
    assert _digest(inner[0]) != _digest(inner[1])
    assert _digest(inner[0]) == _digest(inner[0])


def test_an_installed_package_may_import_what_is_not_there(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It catches the error and does without; only code of the user's has to have its modules."""
    optional = "def scaled(n):\n    try:\n        import nowhere_at_all\n    except ImportError:\n"
    write("site-packages/kit_installed.py", f"{optional}        return n * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    module = importlib.import_module("kit_installed")
    monkeypatch.setitem(sys.modules, "kit_installed", module)
    text = "from kit_installed import scaled\ndef size(n):\n    return scaled(n)\n"
    assert _digest(text) == _digest(text)
    assert _digest(optional.replace("scaled", "size") + "        return n\n") != _digest(
        optional.replace("scaled", "size") + "        return n\n"
    )
