"""Posts alerts to an address, one after another, without delaying anything else."""

from __future__ import annotations

import json
import queue
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from urllib.parse import unquote, urlsplit, urlunsplit

from floodmark.addresses import public_url
from floodmark.errors import WrongUse
from floodmark.fleet.alerts import Alert
from floodmark.secret_text import redacted
from floodmark.wire import to_wire

_SECONDS = 10
_PAUSES = (1.0, 5.0)
"""Seconds before each new try; after the last try the alert is dropped."""
_WAITING = 1000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class Notifier:
    def __init__(self, url: str, warn: Callable[[str], None] = lambda _: None) -> None:
        self._url, self._login = _address(url)
        self._shown = public_url(url)
        self._warn = warn
        self._alerts: queue.Queue[Alert | None] = queue.Queue(_WAITING)
        self._closed = threading.Event()
        self._open = urllib.request.build_opener(_NoRedirect())
        self._thread = threading.Thread(target=self._run, name="floodmark-notify", daemon=True)
        self._thread.start()

    def post(self, alert: Alert) -> None:
        try:
            self._alerts.put_nowait(alert)
        except queue.Full:
            self._warn(f"too many alerts wait for {self._shown}: one was dropped")

    def close(self) -> None:
        """Post the waiting alerts, for as long as one post may take."""
        self._closed.set()
        with suppress(queue.Full):
            self._alerts.put_nowait(None)
        self._thread.join(_SECONDS)

    def _run(self) -> None:
        while (alert := self._alerts.get()) is not None:
            problem = self._send(alert)
            for pause in _PAUSES:
                if problem is None or self._closed.wait(pause):
                    break
                problem = self._send(alert)
            if problem is not None:
                self._warn(f"{self._shown} did not accept an alert: {problem}")

    def _send(self, alert: Alert) -> str | None:
        """Post an alert; return why it was not accepted, or None."""
        # Chat webhooks show `text`.
        body = {**to_wire(alert), "text": f"{alert.name}: {alert.event}. {alert.words}"}
        request = urllib.request.Request(
            self._url,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "User-Agent": "floodmark", **self._login},
            method="POST",
        )
        try:
            with self._open.open(request, timeout=_SECONDS) as answer:
                answer.read(1)
                return None
        except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
            return redacted(str(error) or type(error).__name__)


def _address(url: str) -> tuple[str, dict[str, str]]:
    """Return the address, and the header with its login, if the address names a user."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:
        raise WrongUse(
            f"--notify {public_url(url)}: not an address for posting",
            do="Give http://… or https://….",
        ) from None
    if parts.username is None:
        return url, {}
    named = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    host = parts.netloc.rpartition("@")[2]
    login = b64encode(named.encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), {"Authorization": f"Basic {login}"}
