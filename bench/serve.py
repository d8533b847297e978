"""`serve` with 1,000 checkpoints: first page, a refresh against a full scan, memory, idle time.

One server in a process of its own watches 1,000 checkpoints of 100 batches each. A refresh reads
only what changed; the same refresh is counted request by request on storage whose reads cost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from measure import FLOODMARK, Claims, write_checkpoint

from floodmark.checkpoint.layout import FileInfo
from floodmark.errors import FileGone, FloodmarkError
from floodmark.storage.files import Folder, Listing
from floodmark.storage.glimpse import glimpse
from floodmark.web.examine import examine

CHECKPOINTS = 1000
BATCHES = 100
WATCHED_SECONDS = 30.0
READY_SECONDS = 300.0


class CountedFiles:
    """An object store over a mapping: every listing and every read is a request."""

    reads_cost = True

    def __init__(self, tree: dict[str, bytes]) -> None:
        self.root = "counted"
        self.tree = tree
        self.requests = 0
        self.bytes = 0

    def list(self, folder: str = "", most: int | None = None) -> Listing:
        prefix = folder + "/" if folder else ""
        found = sorted(path for path in self.tree if path.startswith(prefix))[:most]
        self.requests += 1
        self.bytes += sum(len(path) + 60 for path in found)  # a listing has size, time and tag
        return Listing(tuple(FileInfo(path, len(self.tree[path]), 0) for path in found))

    def level(self, folder: str = "") -> Folder:
        prefix = folder + "/" if folder else ""
        inside = [path[len(prefix) :] for path in self.tree if path.startswith(prefix)]
        self.requests += 1
        folders = {name.split("/")[0] for name in inside if "/" in name}
        return Folder(tuple(sorted(folders)), tuple(n for n in inside if "/" not in n))

    def read(self, path: str) -> bytes:
        self.requests += 1
        if path not in self.tree:
            raise FileGone(path)
        self.bytes += len(self.tree[path])
        return self.tree[path]

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | FloodmarkError]:
        return {path: self.read(path) for path in paths}

    def below(self, folder: str) -> CountedFiles:
        raise NotImplementedError(folder)


def tree_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel tells no memory")


def requests_of_a_refresh(place: Path, claims: Claims) -> None:
    counted = CountedFiles(tree_of(place))
    examine(counted)
    full = counted.requests, counted.bytes
    seen = glimpse(counted)
    counted.requests = counted.bytes = 0
    glimpse(counted, seen)
    quiet = counted.requests, counted.bytes
    newest = counted.tree[f"offsets/{BATCHES - 1}"]
    counted.tree[f"offsets/{BATCHES}"] = newest
    counted.tree[f"commits/{BATCHES}"] = counted.tree[f"commits/{BATCHES - 1}"]
    counted.requests = counted.bytes = 0
    glimpse(counted, seen)
    moved = counted.requests, counted.bytes
    for name, (requests, size) in (
        ("a full look", full),
        ("a refresh, nothing new", quiet),
        ("a refresh, one new batch", moved),
    ):
        print(f"{name:26}: {requests:3} requests, {size:,} bytes, for one checkpoint")
    claims.at_most("requests of a refresh to those of a full look", quiet[0] / full[0], 0.5)
    claims.at_most("bytes of a refresh to those of a full look", quiet[1] / full[1], 0.5)


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "data"
        places = [
            write_checkpoint(root / f"team-{number // 50}" / f"stream-{number}", BATCHES)
            for number in range(CHECKPOINTS)
        ]
        requests_of_a_refresh(places[0], claims)
        server = subprocess.Popen(
            [FLOODMARK, "serve", str(root), "--port", "0", "--history", f"{folder}/h.sqlite"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            measure(server, places, claims)
        finally:
            server.terminate()
            server.wait(20)
    claims.finish()


def measure(server: subprocess.Popen[str], places: list[Path], claims: Claims) -> None:
    assert server.stderr is not None
    url = server.stderr.readline().rsplit(" at ", 1)[1].strip()
    began = time.monotonic()
    while True:
        cards = json.loads(get(f"{url}api/fleet"))["cards"]
        if len(cards) == CHECKPOINTS and all(card["findings"] for card in cards):
            break
        if time.monotonic() - began > READY_SECONDS:
            raise SystemExit(f"only {len(cards)} checkpoints after {READY_SECONDS:.0f} s")
        time.sleep(0.5)
    print(f"all {CHECKPOINTS:,} examined after {time.monotonic() - began:.1f} s")
    start = time.perf_counter()
    page, facts = get(url), get(f"{url}api/fleet")
    first = time.perf_counter() - start
    print(f"the first page with its facts: {first:.2f} s, {(len(page) + len(facts)) / 1e6:.2f} MB")
    claims.at_most("seconds to the first page from warm data", first, 1.0)
    print(f"in Chromium, until all {CHECKPOINTS:,} rows stand: {seconds_in_chromium(url):.2f} s")
    revision = json.loads(facts)["revision"]
    after = get(f"{url}api/fleet?since={revision}")
    print(f"a refresh of the page: {len(after):,} bytes against {len(facts):,}")
    claims.at_most("bytes of a page's refresh to the whole", len(after) / len(facts), 0.05)
    idle = share(server.pid)
    claims.at_most("of one core while nothing changes", idle, 0.05)
    busy = share(server.pid, places)
    print(f"of one core while a tenth of the streams commit every interval: {busy:.3f}")
    claims.at_most("of one core while a tenth of the streams commit", busy, 0.05)
    claims.at_most("MB of memory at most", resident_mb(server.pid), 300)


def seconds_in_chromium(url: str) -> float:
    """Told and not claimed: it is the browser's own work, and this machine's."""
    from playwright.sync_api import sync_playwright

    sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
    from browser import chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium())
        times = []
        for _ in range(3):
            page = browser.new_page()
            began = time.perf_counter()
            page.goto(url)
            page.locator("tr.stream").nth(CHECKPOINTS - 1).wait_for()
            times.append(time.perf_counter() - began)
            page.close()
        browser.close()
    return min(times)


def share(pid: int, places: list[Path] = ()) -> float:  # type: ignore[assignment]
    """Of one core, over a while; a tenth of `places` gets a batch every five seconds."""
    before, began = cpu_seconds(pid), time.monotonic()
    number = BATCHES
    while time.monotonic() - began < WATCHED_SECONDS:
        for place in places[::10]:
            last = (place / "offsets" / str(BATCHES - 1)).read_bytes()
            (place / "offsets" / str(number)).write_bytes(last)
            (place / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        number += 1
        time.sleep(5)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began)


if __name__ == "__main__":
    main()
