"""Provides `deploy`: the unit or manifest that runs an application as a service."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from floodmark.errors import FloodmarkError, WrongUse
from floodmark.secret_text import names_secret

TARGETS = ("systemd", "kubernetes", "yarn")


def deploy(
    target: str,
    application: str,
    *,
    name: str | None = None,
    arguments: Iterable[str] = (),
    grace_seconds: int = 600,
    health_port: int | None = None,
    user: str | None = None,
    image: str | None = None,
    folder: str | None = None,
    memory_mb: int = 2048,
    cpus: int = 1,
    out: str | Path | None = None,
) -> str:
    """Return the text of a systemd unit, a Kubernetes manifest or a YARN service.

    `arguments` are more options of `floodmark run`; `out` is a file for the text. With an image,
    `application` and `folder` are paths inside it.
    """
    from floodmark.supervisors import kubernetes, systemd, yarn
    from floodmark.supervisors.options import DeployOptions

    path, colon, pipeline = application.rpartition(":")
    if not (colon and path.endswith(".py")):
        path, colon, pipeline = application, "", ""
    if target not in TARGETS:
        raise WrongUse(f"{target!r} is not a supervisor", do=f"Name one of {', '.join(TARGETS)}.")
    arguments = tuple(arguments)
    _refuse_secrets(arguments)
    if image is None:
        path, command = _here(path), _own_command()
    else:
        command = "floodmark"
    options = DeployOptions(
        name or _name_of(pipeline or Path(path).stem),
        path + colon + pipeline,
        command,
        folder or str(Path(path).parent),
        arguments,
        grace_seconds,
        health_port,
        user,
        image,
        memory_mb,
        cpus,
    )
    writers = {"systemd": systemd.unit, "kubernetes": kubernetes.manifest, "yarn": yarn.service}
    text = writers[target](options)
    if out is not None:
        try:
            Path(out).write_text(text, encoding="utf-8")
        except OSError as error:
            raise FloodmarkError(f"{out}: {error.strerror or error}") from None
    return text


def _refuse_secrets(arguments: Iterable[str]) -> None:
    """Refuse secrets: a unit is kept with the code, and a process list shows its command."""
    for argument in arguments:
        name, equals, _ = argument.removeprefix("--set=").removeprefix("--conf=").partition("=")
        if equals and names_secret(name):
            raise WrongUse(
                f"{name}: the file would hold a secret",
                "Everybody who reads the unit or the manifest, or lists processes, could read "
                "the secret.",
                "Let the pipeline read it from its environment: EnvironmentFile= in systemd, a "
                "Secret in Kubernetes.",
            )


def _here(path: str) -> str:
    if not Path(path).is_file():
        raise WrongUse(
            f"{path}: no such application file",
            "The service would fail at each start.",
            "Give the path of a Python file; with --image, its path inside the image.",
        )
    return str(Path(path).resolve())


def _own_command() -> str:
    beside = Path(sys.executable).with_name("floodmark")
    return str(beside) if beside.exists() else shutil.which("floodmark") or "floodmark"


def _name_of(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
