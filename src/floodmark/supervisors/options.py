"""Defines the options of a service, the same for every supervisor."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from floodmark.errors import WrongUse

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?")
# Exit statuses after which another start would fail in the same way: see docs/running.md.
FOR_GOOD = (1, 2, 3, 4)


@dataclass(frozen=True)
class DeployOptions:
    name: str
    application: str
    """APP.py[:PIPELINE], with the path that the service sees."""
    command: str
    """The floodmark that the service runs."""
    folder: str
    """The working directory: the application's relative paths begin there."""
    arguments: tuple[str, ...] = ()
    """More options of `floodmark run`."""
    grace_seconds: int = 600
    """How long a stop waits for the running batch."""
    health_port: int | None = None
    user: str | None = None
    image: str | None = None
    memory_mb: int = 2048
    cpus: int = 1

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise WrongUse(
                f"{self.name!r} is not a valid name for a service",
                "A name has up to 45 small letters, digits and hyphens.",
                "Give a valid name: --name orders",
            )
        if self.grace_seconds < 1:
            raise WrongUse("--grace must be longer than a batch takes", do="--grace 10min")

    def run_command(self, health_host: str | None = None) -> list[str]:
        words = [self.command, "run", self.application]
        if "--restart" not in self.arguments:
            words += ["--restart", "on-failure"]
        if self.health_port is not None:
            words += ["--health-port", str(self.health_port)]
            words += ["--health-host", health_host] if health_host else []
        return [*words, *self.arguments]

    def shell_command(self, health_host: str | None = None) -> str:
        return shlex.join(self.run_command(health_host))
