"""A real S3 server on a folder: s3proxy, with one bucket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from ports import free_port
from services.server import Server, answers, java

QUIET = '<configuration><root level="OFF"/></configuration>'


class S3Server(Server):
    name = "s3"
    bucket = "floodmark"

    def __init__(self, jars: tuple[Path, ...], asks_who: bool = False) -> None:
        """`asks_who`: it takes no request without the right key, secret and time."""
        super().__init__()
        self._jars = jars
        self._asks_who = asks_who
        self._numbers = count(1)
        self.port = free_port()

    def start(self) -> None:
        """Also after `stop`: the same port, and all that was put is still there."""
        objects = self.folder / "objects"
        # A folder below the root is a bucket.
        (objects / self.bucket).mkdir(parents=True, exist_ok=True)
        (self.folder / "logback.xml").write_text(QUIET)
        properties = {
            "s3proxy.authorization": "aws-v2-or-v4" if self._asks_who else "none",
            "s3proxy.identity": "floodmark",
            "s3proxy.credential": "floodmark",
            "s3proxy.endpoint": self.endpoint,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": objects,
        }
        lines = (f"{key}={value}\n" for key, value in properties.items())
        (self.folder / "s3proxy.properties").write_text("".join(lines))
        command = java(
            self._jars,
            f"-Dlogback.configurationFile={self.folder}/logback.xml",
            "org.gaul.s3proxy.Main",
            "--properties",
            f"{self.folder}/s3proxy.properties",
        )
        self.launch(command, ready=lambda: answers(self.port))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def storage_options(self) -> dict[str, Any]:
        """For fsspec: `fsspec.filesystem("s3", **s3.storage_options)`."""
        return {
            "key": "floodmark",
            "secret": "floodmark",
            "endpoint_url": self.endpoint,
            "client_kwargs": {"region_name": "us-east-1"},
        }

    @property
    def spark_conf(self) -> dict[str, str]:
        """For a session whose checkpoint lies at s3a://…"""
        settings = {
            "endpoint": self.endpoint,
            "endpoint.region": "us-east-1",
            "access.key": "floodmark",
            "secret.key": "floodmark",
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
        }
        return {f"spark.hadoop.fs.s3a.{key}": value for key, value in settings.items()}

    def objects(self, place: str) -> Path:
        """The folder in which the objects of a place lie as files."""
        return self.folder / "objects" / place.partition("://")[2]

    def place(self, name: str = "place") -> str:
        """The URL of a prefix that nothing else uses."""
        return f"s3://{self.bucket}/{name}-{next(self._numbers)}"

    @contextmanager
    def requests(self) -> Iterator[Counter[str]]:
        """Counts the HTTP requests that this process sends, by method: what S3 bills.

        Pages of a listing and retries count too, which is why it looks below s3fs.
        """
        from aiobotocore.httpsession import AIOHTTPSession

        sent: Counter[str] = Counter()
        send = AIOHTTPSession.send

        async def counting(session: Any, request: Any) -> Any:
            sent[request.method] += 1
            return await send(session, request)

        AIOHTTPSession.send = counting
        try:
            yield sent
        finally:
            AIOHTTPSession.send = send
