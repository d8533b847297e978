"""The pages in a real Chromium: live, by keyboard, on a phone, in light and dark, for everybody."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import floodmark
import samples
from browsing import chromium
from patience import wait_until
from project_scripts import script
from served import Server, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.services
SCRIPT = "<script>alert(1)<_script><img src=x onerror=alert(2)>"
SOON = 15_000
DSTREAMS = Path(__file__).parents[1] / "golden" / "4.2" / "dstreams" / "checkpoint"
WIDTHS = {"phone": 390, "tablet": 820, "desktop": 1280}
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
    shutil.copytree(DSTREAMS, place / "legacy" / "words")
    for batch in range(6):
        for log, late in (("offsets", 0), ("commits", 3)):
            at = samples.time_of(batch) / 1000 + late
            os.utime(place / SCRIPT / log / str(batch), (at, at))
    return place


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    with serving(root) as found:
        found.examined(14)
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


@pytest.mark.parametrize(
    ("theme", "width"),
    [("light", "desktop"), ("dark", "desktop"), ("dark", "phone")],
)
def test_axe_finds_no_serious_fault(
    browser: Browser, server: Server, theme: str, width: str
) -> None:
    size = {"width": WIDTHS[width], "height": 900}
    with Watched(browser, color_scheme=theme, viewport=size) as page:
        page.goto(server.url)
        page.wait_for_selector("tr.stream .badge")
        assert serious_faults(page) == []
        open_stream(page, server.url, "payments/orders-enriched")
        for folded in page.query_selector_all("details"):
            folded.evaluate("each => { each.open = true }")
        assert serious_faults(page) == []
        open_dstreams(page, server.url)
        assert serious_faults(page) == []


def open_dstreams(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_role("link", name="legacy/words", exact=True).click()
    page.wait_for_selector("#dstreams-chart .main-svg")
    page.wait_for_selector("#anatomy button.tile")


def test_a_dstreams_folder_has_its_own_views(browser: Browser, server: Server) -> None:
    with Watched(browser) as page:
        page.goto(server.url)
        row = page.locator("tr.stream", has=page.get_by_text("legacy/words", exact=True))
        assert "DStreams" in row.inner_text()
        assert "every 2.0 s" in row.inner_text()
        open_dstreams(page, server.url)
        told = floodmark.inspect(str(DSTREAMS)).dstreams
        assert told is not None
        assert told.restart_file is not None
        assert told.restart_file in page.locator("#restart-words").inner_text()
        shown = page.locator("#dstreams").inner_text()
        for words in (told.restart_file, told.fall_back_file, *(rdd.path for rdd in told.rdds)):
            assert str(words) in shown
        saved = page.locator("#dstreams-saved tbody tr")
        assert saved.count() == len(told.graph_files)
        assert "a recovery takes it" in saved.first.inner_text()
        assert page.locator("#dstreams-batches tbody tr").count() == 10
        assert not page.locator("#batches").is_visible()
        assert not page.get_by_role("link", name="Sources").is_visible()
        assert page.locator("#anatomy button.tile[data-reads=yes]").count() == 4
        assert "floodmark leave-dstreams" in page.locator("#next-list").inner_text()


def test_what_a_reader_has_opened_stays_while_the_page_is_live(
    browser: Browser, tmp_path: Path
) -> None:
    """Focus, unfolded tables and a plan that is shown outlive the batches that come."""
    for name in ("one", "two"):
        samples.write(tmp_path / "data" / name, samples.sales(8))
    two = tmp_path / "data" / "two"
    with serving(tmp_path / "data") as server, Watched(browser) as page:
        server.examined(2)
        page.goto(server.url)
        page.get_by_role("link", name="two", exact=True).focus()
        samples.write(tmp_path / "data" / "one", {"commits/7": samples.commit_entry()})
        page.locator("tr.stream", has_text="one").get_by_text("in flight").wait_for(
            state="detached"
        )
        assert page.evaluate("document.activeElement.textContent") == "two"
        samples.write(two, {"commits/7": samples.commit_entry()})
        page.locator("tr.stream", has_text="two").get_by_text("in flight").wait_for(
            state="detached"
        )
        assert page.evaluate("document.activeElement.textContent") == "two"
        for _ in range(2):
            page.get_by_role("button", name="Late").press("Enter")
            assert "Late" in page.evaluate("document.activeElement.textContent")

        page.get_by_role("link", name="two", exact=True).click()
        page.get_by_text("The same as a table").click()
        page.get_by_text("What a restart loads, by partition").click()
        page.get_by_role("button", name="Show the plan").first.click()
        page.wait_for_selector(".plan pre")
        button = page.get_by_role("button", name="Show the plan").first
        button.focus()
        samples.write(two, {"offsets/8": samples.offset_entry(8, samples.kafka_offset(8))})
        samples.write(two, {"commits/8": samples.commit_entry()})
        page.locator("#batch-table tr[data-batch='8']").wait_for(state="attached")
        page.get_by_text("floodmark rewind").first.get_by_text("--to-batch 7").wait_for()
        assert page.locator("#batches details").evaluate("each => each.open")
        assert page.locator("#load details").evaluate("each => each.open")
        assert page.locator(".plan pre").count() == 1
        assert page.evaluate("document.activeElement.textContent") == "Show the plan"


def test_the_ages_on_a_page_agree(browser: Browser, server: Server) -> None:
    with Watched(browser) as page:
        open_stream(page, server.url, "warehouse/stock-levels")
        page.wait_for_timeout(2500)
        ages = page.evaluate(
            "[document.querySelector('#vitals .age').textContent,"
            " document.getElementById('health-words').textContent]"
        )
        assert ages[0] in ages[1]


def test_batches_that_are_purged_stay_in_the_chart(browser: Browser, tmp_path: Path) -> None:
    sample_fleet = script("sample_fleet")
    stream = sample_fleet.SampleStream("orders", batches=60, every=70, takes=20)
    folder = tmp_path / "data" / "orders"
    sample_fleet.write_stream(folder, stream, time.time(), random.Random(4))
    kept = str(tmp_path / "history.sqlite")
    with serving(tmp_path / "data", history=kept) as server:
        [card] = server.examined().values()
        base = f"/api/checkpoints/{card['id']}"
        before = {bar["batch"]: bar for bar in server.get(base).json["detail"]["batches"]}
        wait_until(lambda: len(server.get(f"{base}/history").json["batches"]) >= 55)
        # The history may leave out some of them.
        held = {one["batch"] for one in server.get(f"{base}/history").json["batches"]}
    gone = sorted(before)[:40]
    for batch in gone:
        (folder / "offsets" / str(batch)).unlink()
        (folder / "commits" / str(batch)).unlink()
    with serving(tmp_path / "data", history=kept) as server, Watched(browser) as page:
        server.examined()
        open_stream(page, server.url, "orders")
        drawn = "[0, 2].map((n) => document.getElementById('batch-chart').data[n].y.length)"
        assert page.evaluate(drawn) == [20, 0]
        page.get_by_role("button", name="24 hours").click()
        page.locator("#batches-history", has_text="older batches").wait_for()
        assert page.evaluate(drawn)[1] > 30
        page.get_by_text("The same as a table").click()
        for batch in [one for one in gone if one in held][1::9]:
            row = page.locator(f"#batch-table tr[data-batch='{batch}']")
            assert "purged" in row.inner_text()
            took = int(row.locator("td").nth(3).inner_text().removesuffix(" ms").replace(",", ""))
            # A file's time is that of its write, and may be rounded.
            assert abs(took - before[batch]["duration_ms"]) <= 2


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
        open_dstreams(page, server.url)
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
        assert page.locator("tr.stream").count() == 14
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
        # Errors come before streams that are only late, though their own is on time.
        errors = page.locator("tr.stream", has=page.locator(".badge[data-level=error]"))
        assert errors.count() == 2
        for place in range(2):
            shown = page.locator("tr.stream").nth(2 + place)
            assert (
                shown.locator(".name").inner_text()
                == errors.nth(place).locator(".name").inner_text()
            )
        page.get_by_role("button", name="State", exact=True).click()
        assert "orders-enriched" in first.inner_text()
        page.get_by_role("button", name="2 Stalled").click()
        assert page.locator("tr.stream").count() == 2
        page.get_by_role("button", name="2 Stalled").click()
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
