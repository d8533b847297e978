"""A `floodmark serve` of a test's own, in a thread of the test process."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark import api
from patience import LIMIT, wait_until


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Server:
    url: str

    def get(self, path: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url.rstrip("/") + path, headers=named)
        return self._answer(request)

    def post(self, path: str, body: bytes) -> Answer:
        return self._answer(urllib.request.Request(self.url.rstrip("/") + path, body))

    def _answer(self, request: urllib.request.Request) -> Answer:
        opener = urllib.request.build_opener(_Stay())
        try:
            with opener.open(request, timeout=LIMIT) as answer:
                return Answer(
                    answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
                )
        except urllib.error.HTTPError as error:
            return Answer(
                error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()
            )

    def cards(self) -> dict[str, Any]:
        return {card["name"]: card for card in self.get("/api/fleet").json["cards"]}

    def wait_for(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The cards by name, once they are as wanted."""

        def fitting() -> dict[str, Any] | None:
            cards = self.cards()
            return cards if fits(cards) else None

        return wait_until(fitting, self.cards)

    def examined(self, count: int = 1) -> dict[str, Any]:
        return self.wait_for(
            lambda cards: (
                len(cards) == count
                and all(card["findings"] or card["problem"] for card in cards.values())
            )
        )


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@contextmanager
def serving(*roots: Path | str, **options: Any) -> Iterator[Server]:
    """Looks every half second, and keeps its history in memory unless told."""
    found: list[str] = []
    ready, stop = threading.Event(), threading.Event()
    wanted = {"port": 0, "interval": 0.5, "no_history": "history" not in options, **options}
    failures: list[BaseException] = []

    def note(served: api.Served) -> None:
        found.append(served.url)
        ready.set()

    def run() -> None:
        try:
            api.serve([str(root) for root in roots], ready=note, stop=stop, **wanted)
        except BaseException as error:
            failures.append(error)
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(LIMIT)
    if failures:
        raise failures[0]
    try:
        yield Server(found[0])
    finally:
        stop.set()
        thread.join(LIMIT)
        assert not thread.is_alive()
