"""Guards every request: the Host header, the token, and the headers of every answer."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "floodmark"
# Charts set style attributes; scripts come only from this server, and no page contains one.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: "
    "blob:; connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_OPEN_TO_ALL = ("/login", "/static/")
_WRONG_TOKEN_SECONDS = 0.5


class Keys:
    """Holds the token, and a browser's cookie that replaces it until the server ends."""

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._secret = secrets.token_bytes(32)

    @property
    def needed(self) -> bool:
        return self._token is not None

    def fits(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(
            token.encode(errors="replace"), self._token.encode()
        )

    @property
    def cookie(self) -> str:
        return hmac.new(self._secret, b"floodmark", hashlib.sha256).hexdigest()

    def let_in(self, headers: dict[bytes, bytes]) -> bool:
        given = headers.get(b"authorization", b"").decode("latin-1")
        scheme, _, token = given.partition(" ")
        if scheme.lower() == "bearer" and self.fits(token.strip()):
            return True
        try:
            cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return False
        found = cookies.get(COOKIE)
        return found is not None and hmac.compare_digest(found.value.encode(), self.cookie.encode())


class Guard:
    """Checks every request before the application gets it."""

    def __init__(self, app: App, keys: Keys, hosts: Collection[str]) -> None:
        """`hosts`: names that the server answers to, besides addresses and localhost."""
        self._app = app
        self._keys = keys
        self._hosts = {host.lower() for host in hosts} | {"localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _with_headers(send, str(scope["path"]))
        headers = dict(scope["headers"])
        if not self._answers_to(headers.get(b"host", b"").decode("latin-1")):
            await _refuse(
                guarded,
                421,
                "This server does not answer to that host name. If it is "
                "meant to, name it with --allow-host.",
            )
            return
        is_open = not self._keys.needed or str(scope["path"]).startswith(_OPEN_TO_ALL)
        if not is_open and not self._keys.let_in(headers):
            if b"authorization" in headers:
                await asyncio.sleep(_WRONG_TOKEN_SECONDS)
            await self._ask_for_token(scope, headers, guarded)
            return
        await self._app(scope, receive, guarded)

    def _answers_to(self, host: str) -> bool:
        """Whether the server answers to a host; an address cannot be rebound, but a name can."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower().rstrip(".")
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    @staticmethod
    async def _ask_for_token(scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        if b"text/html" in headers.get(b"accept", b"") and scope["method"] == "GET":
            await _answer(send, 303, b"", ((b"location", b"/login"),))
        else:
            await _refuse(
                send,
                401,
                "Give the token: Authorization: Bearer TOKEN.",
                ((b"www-authenticate", b"Bearer"),),
            )


def _with_headers(send: Send, path: str) -> Send:
    async def guarded(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            named = {name.lower() for name, _ in message.get("headers", ())}
            more = [pair for pair in _HEADERS if pair[0] not in named]
            if b"cache-control" not in named and not path.startswith("/static/"):
                more.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return guarded


async def _refuse(
    send: Send, status: int, words: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    import json

    body = json.dumps({"detail": words}).encode()
    await _answer(send, status, body, (*headers, (b"content-type", b"application/json")))


async def _answer(
    send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
