"""Emulators of Azure's and Google's storage: Azurite and fake-gcs-server, on loopback."""

from __future__ import annotations

import base64
from itertools import count
from pathlib import Path
from typing import Any

from ports import free_port
from services.server import Server, answers


class Emulator(Server):
    """A server with one bucket, which Azure calls a container."""

    scheme = ""
    bucket = "floodmark"

    def __init__(self, program: Path) -> None:
        super().__init__()
        self.program = program
        self.port = free_port()
        self._numbers = count(1)

    def command(self) -> list[str]:
        raise NotImplementedError

    @property
    def storage_options(self) -> dict[str, Any]:
        raise NotImplementedError

    def start(self) -> None:
        import fsspec

        self.launch(self.command(), ready=lambda: answers(self.port))
        fsspec.filesystem(self.scheme, **self.storage_options).mkdir(self.bucket)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def place(self, name: str = "place") -> str:
        """The URL of a prefix that nothing else uses."""
        return f"{self.scheme}://{self.bucket}/{name}-{next(self._numbers)}"


class Azurite(Emulator):
    name = "azurite"
    scheme = "abfs"
    _ACCOUNT, _KEY = "floodmark", base64.b64encode(b"floodmark").decode()

    def command(self) -> list[str]:
        account = f"AZURITE_ACCOUNTS={self._ACCOUNT}:{self._KEY}"
        place = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        quiet = ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        return ["env", account, str(self.program), *place, "--location", str(self.folder), *quiet]

    @property
    def storage_options(self) -> dict[str, Any]:
        told = {
            "DefaultEndpointsProtocol": "http",
            "AccountName": self._ACCOUNT,
            "AccountKey": self._KEY,
            "BlobEndpoint": f"{self.endpoint}/{self._ACCOUNT}",
        }
        text = ";".join(f"{key}={value}" for key, value in told.items())
        return {"account_name": self._ACCOUNT, "connection_string": text}


class FakeGcs(Emulator):
    name = "gcs"
    scheme = "gs"

    def command(self) -> list[str]:
        place = ["-host", "127.0.0.1", "-port", str(self.port), "-public-host", "127.0.0.1"]
        held = ["-scheme", "http", "-backend", "memory", "-external-url", self.endpoint]
        return [str(self.program), *place, *held]

    @property
    def storage_options(self) -> dict[str, Any]:
        return {"endpoint_url": self.endpoint, "token": "anon", "project": "floodmark"}
