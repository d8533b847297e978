"""Gives lines to a socket source, each line once, as a socket does."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path

_PAUSE_SECONDS = 1.5


class LineServer:
    """Listens on a port of this machine; it sends each line once, to one reader."""

    def __init__(self, portions: Path, done: Path) -> None:
        self._files = sorted(portions.iterdir())
        self._done = done
        self._sent = 0
        self._sending = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                reader, _ = self._listening.accept()
                threading.Thread(target=self._send, args=(reader,), daemon=True).start()

    def _send(self, reader: socket.socket) -> None:
        """Send the portions one after another, so that they become several batches."""
        with contextlib.suppress(OSError), reader:  # killed
            while self._send_next(reader):
                self._wait(reader)
            self._done.touch()
            reader.recv(1)

    def _send_next(self, reader: socket.socket) -> bool:
        """Send one portion. The next reader comes while a killed one's thread still counts it."""
        with self._sending:
            if self._sent == len(self._files):
                return False
            reader.sendall(self._files[self._sent].read_bytes())
            self._sent += 1
            return True

    def _wait(self, reader: socket.socket) -> None:
        """Wait before the next portion; raise an error if the reader has gone."""
        reader.settimeout(_PAUSE_SECONDS)
        until = time.monotonic() + _PAUSE_SECONDS
        try:
            if not reader.recv(1):
                raise ConnectionError
        except TimeoutError:
            return
        finally:
            reader.settimeout(None)
        time.sleep(max(0.0, until - time.monotonic()))
