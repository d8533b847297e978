"""Chromium, driven by Playwright, for tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from project_scripts import script

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=script("browser").chromium())
        try:
            yield browser
        finally:
            browser.close()
