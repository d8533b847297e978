"""Azurite, Microsoft's emulator of Azure's blob storage, with one container."""

from __future__ import annotations

import base64
from itertools import count
from pathlib import Path
from typing import Any

from services.server import Server, answers, free_port

_ACCOUNT = "floodmark"
_KEY = base64.b64encode(b"floodmark").decode()


class AzureServer(Server):
    name = "azure"
    container = "floodmark"

    def __init__(self, program: Path) -> None:
        super().__init__()
        self._program = program
        self._numbers = count(1)
        self.port = free_port()

    def start(self) -> None:
        command = ["env", f"AZURITE_ACCOUNTS={_ACCOUNT}:{_KEY}", str(self._program), "--silent"]
        command += ["--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        command += ["--location", str(self.folder), "--skipApiVersionCheck"]
        self.launch(command, ready=lambda: answers(self.port))
        self._make_container()

    def _make_container(self) -> None:
        import fsspec

        fsspec.filesystem("abfs", **self.storage_options).mkdir(self.container)

    @property
    def storage_options(self) -> dict[str, Any]:
        endpoint = f"http://127.0.0.1:{self.port}/{_ACCOUNT}"
        told = {
            "DefaultEndpointsProtocol": "http",
            "AccountName": _ACCOUNT,
            "AccountKey": _KEY,
            "BlobEndpoint": endpoint,
        }
        return {"connection_string": ";".join(f"{key}={value}" for key, value in told.items())}

    def place(self, name: str = "place") -> str:
        """The URL of a prefix that nothing else uses."""
        return f"abfs://{self.container}/{name}-{next(self._numbers)}"
