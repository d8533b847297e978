"""A real HDFS, name node and data node in one JVM, spoken to by RPC and by WebHDFS."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from ports import free_port
from services.server import Server, answers, java


class HdfsServer(Server):
    name = "hdfs"

    def __init__(self, jars: tuple[Path, ...]) -> None:
        super().__init__()
        self._jars = jars
        self._numbers = count(1)
        self.rpc_port = 0
        self.http_port = 0

    def start(self) -> None:
        self.rpc_port, self.http_port = free_port(), free_port()
        settings = {
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
            "hadoop.security.authentication": "simple",
        }
        command = java(
            self._jars,
            f"-Dhadoop.log.dir={self.folder}/logs",
            f"-Dtest.build.data={self.folder}/data",
            f"-Dlog4j2.configurationFile={self._quiet()}",
            "org.apache.hadoop.test.MiniDFSClusterManager",
            *("-datanodes", "1", "-format"),
            *("-nnport", str(self.rpc_port), "-httpport", str(self.http_port)),
            *(part for key, value in settings.items() for part in ("-D", f"{key}={value}")),
            *("-writeDetails", str(self.folder / "details.json")),
        )
        self.launch(command, ready=self._is_ready)

    def _quiet(self) -> Path:
        path = self.folder / "log4j2.properties"
        path.write_text("rootLogger.level = off\n")
        return path

    def _is_ready(self) -> bool:
        # The details are written once the data node has joined.
        return (self.folder / "details.json").exists() and answers(self.http_port)

    def place(self, name: str = "place") -> str:
        """The path of a folder that nothing else uses; it is made."""
        path = f"/{name}-{next(self._numbers)}"
        ask = f"http://127.0.0.1:{self.http_port}/webhdfs/v1{path}?op=MKDIRS"
        urllib.request.urlopen(urllib.request.Request(ask, method="PUT"), timeout=120).close()
        return path

    @contextmanager
    def safe_mode(self) -> Iterator[None]:
        """What is there can be read, and nothing can be written."""
        self._admin("enter")
        try:
            yield
        finally:
            self._admin("leave")

    def _admin(self, word: str) -> None:
        admin = ("org.apache.hadoop.hdfs.tools.DFSAdmin", "-fs", self.rpc("/"))
        command = java(self._jars, *admin, "-safemode", word)
        subprocess.run(command, check=True, capture_output=True, timeout=120)

    def web(self, path: str) -> str:
        """For fsspec."""
        return f"webhdfs://127.0.0.1:{self.http_port}{path}"

    def rpc(self, path: str) -> str:
        """For Spark."""
        return f"hdfs://127.0.0.1:{self.rpc_port}{path}"
