"""Reads offsets of a socket (for tests): a bare number, as a memory stream's. Pure."""

from __future__ import annotations

from floodmark.connectors.source import SourceKind


class Socket(SourceKind):
    name = "socket"
    formats = frozenset({"textsocket"})
    any_format = True
    no_option = "A socket cannot be read again, so it has no starting option."


KIND = Socket()
