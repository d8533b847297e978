"""Posts alerts to an address, one after another, without holding up anything else."""

from __future__ import annotations

import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from urllib.parse import urlsplit

from floodmark.addresses import public_url
from floodmark.errors import WrongUse
from floodmark.fleet.alerts import Alert
from floodmark.secret_text import redacted
from floodmark.wire import to_wire

_SECONDS = 10
_TRIES = 3
_WAITING = 1000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class Notifier:
    def __init__(self, url: str, warn: Callable[[str], None] = lambda _: None) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise WrongUse(
                f"--notify {public_url(url)}: not an address that can be posted to",
                do="Give http://… or https://….",
            )
        self._url = url
        self._shown = public_url(url)
        self._warn = warn
        self._alerts: queue.Queue[Alert | None] = queue.Queue(_WAITING)
        self._open = urllib.request.build_opener(_NoRedirect())
        self._thread = threading.Thread(target=self._run, name="floodmark-notify", daemon=True)
        self._thread.start()

    def post(self, alert: Alert) -> None:
        try:
            self._alerts.put_nowait(alert)
        except queue.Full:
            self._warn(f"too many alerts wait for {self._shown}: one was dropped")

    def close(self) -> None:
        self._alerts.put(None)
        self._thread.join(_SECONDS)

    def _run(self) -> None:
        while (alert := self._alerts.get()) is not None:
            for again in range(_TRIES):
                problem = self._send(alert)
                if problem is None:
                    break
                if again == _TRIES - 1:
                    self._warn(f"{self._shown} did not take an alert: {problem}")

    def _send(self, alert: Alert) -> str | None:
        """Why it was not taken; None: it was."""
        # `text` is what chat webhooks show.
        body = {**to_wire(alert), "text": f"{alert.name}: {alert.event}. {alert.words}"}
        request = urllib.request.Request(
            self._url,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "User-Agent": "floodmark"},
            method="POST",
        )
        try:
            with self._open.open(request, timeout=_SECONDS) as answer:
                answer.read(1)
                return None
        except (urllib.error.URLError, OSError, ValueError) as error:
            return redacted(str(error))
