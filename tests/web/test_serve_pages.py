"""The pages in a real Chromium: live, by keyboard, on a phone, in light and dark, for everybody."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import samples
from browsing import chromium, script
from served import Server, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.services
SCRIPT = "<script>alert(1)<_script><img src=x onerror=alert(2)>"
SOON = 15_000
# One look of axe at each page is enough; what it calls serious or critical must not be there.
SERIOUS = {"serious", "critical"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A company's streams, with one whose every name is markup."""
    place = tmp_path_factory.mktemp("company") / "data"
    script("sample_fleet").write_fleet(place)
    tree = samples.logs(range(6), range(6), offset=lambda n: samples.kafka_offset(n, SCRIPT))
    tree["metadata"] = json.dumps({"id": SCRIPT}).encode()
    tree["_floodmark/starts/1.json"] = json.dumps(
        {"floodmark": "start-note", "next_batch": 2, "spark_version": SCRIPT, "sink": SCRIPT}
    ).encode()
    samples.write(place / SCRIPT, tree)
    for batch in range(6):
        for log, late in (("offsets", 0), ("commits", 3)):
            at = samples.time_of(batch) / 1000 + late
            os.utime(place / SCRIPT / log / str(batch), (at, at))
    return place


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    with serving(root) as found:
        found.examined(13)
        yield found


class Watched:
    """A page, and what went wrong in it."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(SOON)
        self.troubles: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("dialog", lambda dialog: (self.troubles.append("dialog"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def _console(self, message: Any) -> None:
        if message.type == "error" and "404" not in message.text:
            self.troubles.append(message.text)

    def __enter__(self) -> Page:
        return self.page

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        if kind is None:
            assert self.troubles == []
            assert len(self.hosts) == 1, "everything comes from this server"


def open_stream(page: Page, url: str, name: str) -> None:
    page.goto(url)
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_selector("#batch-chart .main-svg")
    page.wait_for_selector("#anatomy button.tile")


def serious_faults(page: Page) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']} {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found
        if one["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser: Browser, server: Server, theme: str) -> None:
    with Watched(browser, color_scheme=theme, viewport={"width": 1280, "height": 900}) as page:
        page.goto(server.url)
        page.wait_for_selector("tr.stream .badge")
        assert serious_faults(page) == []
        open_stream(page, server.url, "payments/orders-enriched")
        for folded in page.query_selector_all("details"):
            folded.evaluate("each => { each.open = true }")
        assert serious_faults(page) == []


def test_a_phone_shows_everything_without_scrolling_sideways(
    browser: Browser, server: Server
) -> None:
    with Watched(browser, viewport={"width": 360, "height": 740}, has_touch=True) as page:
        page.goto(server.url)
        page.wait_for_selector("tr.stream .badge")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) <= 0
        open_stream(page, server.url, "payments/orders-enriched")
        assert page.evaluate(wide) <= 0


def test_markup_in_names_and_values_is_text(browser: Browser, server: Server) -> None:
    """No dialog opens and no element comes to be; `Watched` fails if one does."""
    with Watched(browser) as page:
        page.goto(server.url)
        page.get_by_role("link", name=SCRIPT, exact=True).click()
        page.wait_for_selector("#source-list table")
        page.wait_for_selector("#anatomy button.tile")
        assert page.locator("h1").inner_text() == SCRIPT
        assert SCRIPT in page.locator("#identity").inner_text()
        assert page.locator("img").count() == 0
        page.locator("#batch-chart").hover()
        page.locator("#anatomy button.tile").first.hover()
        page.locator("#diff-form button").click()
        page.wait_for_selector("#diff-result table")
        page.wait_for_timeout(300)


def test_by_keyboard(browser: Browser, server: Server) -> None:
    with Watched(browser) as page:
        page.goto(server.url)
        page.wait_for_selector("tr.stream .badge")
        page.keyboard.press("/")
        page.keyboard.type("payments")
        assert page.locator("tr.stream").count() == 4
        page.keyboard.press("Escape")
        assert page.locator("tr.stream").count() == 13
        page.locator("body").click(position={"x": 2, "y": 300})
        page.keyboard.press("j")
        page.keyboard.press("j")
        second = page.evaluate("document.activeElement.textContent")
        assert second == page.locator("a.name").nth(1).inner_text()
        page.keyboard.press("Enter")
        page.wait_for_selector("#anatomy button.tile")
        page.locator("#anatomy button.tile").first.focus()
        page.keyboard.press("ArrowDown")
        assert page.locator("#file-told code").inner_text().startswith("offsets/")


def test_sorting_filtering_and_themes(browser: Browser, server: Server) -> None:
    with Watched(browser) as page:
        page.goto(server.url)
        page.wait_for_selector("tr.stream .badge")
        first = page.locator("tr.stream").first
        assert first.get_attribute("data-health") == "stalled"
        page.get_by_role("button", name="State", exact=True).click()
        assert "orders-enriched" in first.inner_text()
        page.get_by_role("button", name="1 Stalled").click()
        assert page.locator("tr.stream").count() == 1
        page.get_by_role("button", name="1 Stalled").click()
        assert page.locator("tr.group").inner_text().lower().startswith("pipeline lake")
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_role("button", name="Light or dark").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_it_is_live_without_reloading(browser: Browser, tmp_path: Path) -> None:
    samples.write(tmp_path / "data" / "sales", samples.sales(5))
    with serving(tmp_path / "data") as server, Watched(browser) as page:
        server.examined()
        page.goto(server.url)
        page.get_by_text("batch 4 in flight").wait_for()
        page.evaluate("window.notReloaded = true")
        samples.write(tmp_path / "data" / "sales", {"commits/4": samples.commit_entry()})
        page.get_by_text("batch 4 in flight").wait_for(state="detached")
        samples.write(tmp_path / "data" / "more", samples.logs(range(3), range(3)))
        page.get_by_role("link", name="sales", exact=True).click()
        page.locator(".step[data-state=done]").nth(2).wait_for()
        page.evaluate("window.notReloaded = true")
        samples.write(
            tmp_path / "data" / "sales",
            {"offsets/5": samples.offset_entry(5, samples.kafka_offset(5))},
        )
        page.locator(".step[data-state=now]").wait_for()
        shutil.rmtree(tmp_path / "data" / "sales")
        page.get_by_text("This checkpoint is gone").wait_for()
        assert page.evaluate("window.notReloaded") is True


def test_the_token_is_asked_for_once(browser: Browser, tmp_path: Path) -> None:
    samples.write(tmp_path / "data" / "sales", samples.sales(3))
    token = "a-token-that-is-long-enough"
    (tmp_path / "token").write_text(token)
    with serving(tmp_path / "data", token_file=str(tmp_path / "token")) as server:
        found = Watched(browser)
        page = found.page
        page.goto(server.url)
        assert page.url.endswith("/login")
        page.get_by_label("Token").fill("wrong-wrong-wrong-wrong")
        page.keyboard.press("Enter")
        page.get_by_text("That is not the token.").wait_for()
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="sales", exact=True).wait_for()
        found.context.close()
