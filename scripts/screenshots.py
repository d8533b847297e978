"""Takes the pictures of docs/serving.md: each page at three widths, in light and in dark.

    python scripts/screenshots.py [FOLDER]

Without FOLDER those that the document shows are put into docs/pictures.

It serves a made-up company's checkpoints (scripts/sample_fleet.py) and opens them in Chromium.
Its Kafka is made up as well: the answers come from the same file.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from browser import chromium
from sample_fleet import sample_lag, write_fleet

from floodmark import api

WIDTHS = {"wide": 1360, "tablet": 820, "phone": 390}
DOCS = Path(__file__).resolve().parents[1] / "docs"
DSTREAMS = DOCS.parent / "tests" / "golden" / "4.2" / "dstreams" / "checkpoint"


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of a server in a thread of this process, which ends with it."""
    ready: list[str] = []
    listening, stop = threading.Event(), threading.Event()

    def note(found: Any) -> None:
        ready.append(found.url)
        listening.set()

    def run() -> None:
        with patch("floodmark.api.lagging.lag", sample_lag):
            api.serve(
                [str(root)],
                port=0,
                no_history=True,
                interval=1.0,
                sources=True,
                ready=note,
                stop=stop,
            )

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    if not listening.wait(30):
        raise SystemExit("the server did not start within 30 seconds")
    try:
        yield ready[0]
    finally:
        stop.set()
        thread.join(10)


def main(folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "data"
        write_fleet(root)
        shutil.copytree(DSTREAMS, root / "legacy" / "word-counts")
        with served(root) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium())
            for theme in ("light", "dark"):
                for name, width in WIDTHS.items():
                    context = browser.new_context(
                        viewport={"width": width, "height": 900}, color_scheme=theme
                    )
                    page = context.new_page()
                    page.goto(url)
                    page.wait_for_selector("tr.stream .badge, tr.stream .sound")
                    page.wait_for_timeout(2500)
                    page.screenshot(path=folder / f"fleet-{name}-{theme}.png")
                    page.get_by_role("link", name="orders-enriched").click()
                    page.wait_for_selector("#batch-chart .main-svg")
                    page.wait_for_selector("#anatomy button.tile")
                    page.wait_for_timeout(1200)
                    page.screenshot(path=folder / f"checkpoint-{name}-{theme}.png")
                    for view in ("sources", "state", "files"):
                        page.locator(f"#tabs a[href='#{view}']").click()
                        page.wait_for_timeout(700)
                        page.screenshot(path=folder / f"{view}-{name}-{theme}.png")
                    page.goto(url)
                    page.get_by_role("link", name="legacy/word-counts").click()
                    page.wait_for_selector("#dstreams-chart .main-svg")
                    page.wait_for_timeout(700)
                    page.screenshot(path=folder / f"dstreams-{name}-{theme}.png")
                    context.close()
            browser.close()


def renew_documents() -> None:
    shown = set(re.findall(r"pictures/([\w-]+\.png)", (DOCS / "serving.md").read_text()))
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
        for name in shown:
            shutil.copy(Path(place) / name, DOCS / "pictures" / name)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        renew_documents()
