"""Asks the Spark UIs of this machine which streaming queries run.

Only listening ports of the loopback address are asked: 4040 and the next ones, where Spark puts its
UI, and ports that a JVM's command line names. A UI that is switched off, protected or slow gives
no answer, which proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from floodmark.storage.machine.process import all_jvms, command_of

_HOST = "127.0.0.1"
_FIRST_PORT, _TRIES = 4040, 16  # spark.ui.port and spark.port.maxRetries
_SECONDS = 2.0
_MOST_BYTES = 2 * 1024 * 1024
_LISTENS = "0A"
_OK = 200
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_PORT = re.compile(r"spark\.ui\.port=(\d{2,5})")


def ui_that_shows(query_id: str) -> str | None:
    """Return the address of a UI that lists this query as running."""
    for port in _ports():
        if any(query_id in row and "RUNNING" in row for row in _ROW.findall(_page(port))):
            return f"http://{_HOST}:{port}/StreamingQuery/"
    return None


def _ports() -> list[int]:
    named = {int(port) for port in _named_ports() if int(port) < 1 << 16}
    usual = range(_FIRST_PORT, _FIRST_PORT + _TRIES + 1)
    wanted = named.union(usual, *(range(one, one + _TRIES + 1) for one in named))
    return sorted(wanted & set(_listening()))


def _named_ports() -> Iterator[str]:
    for pid in all_jvms():
        yield from _PORT.findall(" ".join(command_of(pid)))


def _listening(tables: Iterable[str] = ("/proc/net/tcp", "/proc/net/tcp6")) -> Iterator[int]:
    for table in tables:
        try:
            lines = Path(table).read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            continue
        for fields in (line.split() for line in lines[1:]):
            if len(fields) > 3 and fields[3] == _LISTENS:
                yield int(fields[1].rpartition(":")[2], 16)


def _page(port: int) -> str:
    """Return a page; empty where there is no such page, or no answer in time."""
    import http.client  # costs more than reading a checkpoint does

    connection = http.client.HTTPConnection(_HOST, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/StreamingQuery/")
        answer = connection.getresponse()
        # Do not follow a redirect: it could lead to another machine.
        return answer.read(_MOST_BYTES).decode("utf-8", "replace") if answer.status == _OK else ""
    except (OSError, ValueError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
