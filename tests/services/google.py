"""fake-gcs-server, an emulator of Google's cloud storage, with one bucket."""

from __future__ import annotations

import json
import urllib.request
from itertools import count
from pathlib import Path
from typing import Any

from services.server import Server, answers, free_port


class GoogleServer(Server):
    name = "google"
    bucket = "floodmark"

    def __init__(self, program: Path) -> None:
        super().__init__()
        self._program = program
        self._numbers = count(1)
        self.port = free_port()

    def start(self) -> None:
        command = [str(self._program), "-scheme", "http", "-backend", "memory"]
        command += ["-host", "127.0.0.1", "-port", str(self.port)]
        command += ["-public-host", f"127.0.0.1:{self.port}", "-log-level", "error"]
        self.launch(command, ready=lambda: answers(self.port))
        ask = urllib.request.Request(
            f"{self.endpoint}/storage/v1/b?project=floodmark",
            data=json.dumps({"name": self.bucket}).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(ask, timeout=30).close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def storage_options(self) -> dict[str, Any]:
        return {"endpoint_url": self.endpoint, "token": "anon", "project": "floodmark"}

    def place(self, name: str = "place") -> str:
        """The URL of a prefix that nothing else uses."""
        return f"gs://{self.bucket}/{name}-{next(self._numbers)}"
