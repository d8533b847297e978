"""Reads the application as it was in a git revision, with the files beside it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from floodmark.engine.pipelines.application import split_target
from floodmark.errors import WrongUse


@contextlib.contextmanager
def at_revision(target: str, revision: str) -> Iterator[str]:
    """Yield the revision's `APP.py[:NAME]`, in a folder that lasts as long as the `with`."""
    path, name = split_target(target)
    folder = path.resolve().parent
    top = Path(_git(folder, revision, "rev-parse", "--show-toplevel").decode().strip())
    inside = path.resolve().relative_to(top)
    commit = _git(folder, revision, "rev-parse", "--verify", f"{revision}^{{commit}}")
    named = [str(inside.parent)] if str(inside.parent) != "." else []
    archive = _git(top, revision, "archive", "--format=tar", commit.decode().strip(), *named)
    with tempfile.TemporaryDirectory(prefix="floodmark-revision-") as made:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(made, filter="data")  # nosec B202: the filter keeps it inside
        old = Path(made) / inside
        if not old.is_file():
            raise WrongUse(
                f"--old-ref {revision}: {inside} is not in that revision",
                "It was in another place then, or did not exist yet.",
                "Give the old file itself: --old OLD.py",
            )
        yield f"{old}:{name}" if name else str(old)


def _git(folder: Path, revision: str, *arguments: str) -> bytes:
    try:
        done = subprocess.run(  # nosec B603 B607: git as the user has it, no shell
            ["git", "-C", str(folder), *arguments], capture_output=True, check=False
        )
    except FileNotFoundError:
        raise WrongUse(
            f"--old-ref {revision}: git is not installed here",
            do="Give the old file itself: --old OLD.py",
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise WrongUse(
            f"--old-ref {revision}: git does not find it in {folder}",
            said[0] if said else "",
            "Name a commit, tag or branch of the application's repository.",
        )
    return done.stdout
