"""What is replaced for a while is what it was, afterwards."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from floodmark.engine.app.patching import Patches


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "seldom_imported.py").write_text("def answer() -> int:\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "seldom_imported", raising=False)
    return "seldom_imported"


def _answers_two(patches: Patches, name: str) -> None:
    def patch(found: ModuleType) -> None:
        patches.wrap(found, "answer", lambda _original: lambda: 2)

    patches.when_imported(name, patch)


def test_a_module_is_patched_when_it_is_imported_and_only_meanwhile(module: str) -> None:
    finders = list(sys.meta_path)
    with Patches() as patches:
        _answers_two(patches, module)
        assert module not in sys.modules
        assert importlib.import_module(module).answer() == 2
    assert sys.modules[module].answer() == 1
    assert importlib.reload(sys.modules[module]).answer() == 1
    assert sys.meta_path == finders


def test_a_module_that_is_there_already_is_patched_at_once(module: str) -> None:
    found = importlib.import_module(module)
    with Patches() as patches:
        _answers_two(patches, module)
        assert found.answer() == 2
    assert found.answer() == 1


def test_a_script_that_clears_the_finders_does_no_harm(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with Patches() as patches:
        _answers_two(patches, module)
        sys.meta_path.pop(0)
    assert importlib.import_module(module).answer() == 1
