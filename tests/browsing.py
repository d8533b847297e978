"""Chromium, driven by Playwright, for tests of pages."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


def script(name: str) -> Any:
    """A module of scripts/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[name] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=script("browser").chromium())
        try:
            yield browser
        finally:
            browser.close()
