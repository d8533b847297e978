"""Reads the application as it was in a git revision, with all files of the repository."""

from __future__ import annotations

import contextlib
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from floodmark.engine.app.surroundings import in_revision
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
    with tempfile.TemporaryDirectory(prefix="floodmark-revision-") as made:
        # All of it: the code may import modules from anywhere in the repository.
        archive, tree = Path(made) / "revision.tar", Path(made) / "tree"
        to_file = f"--output={archive}"
        _git(top, revision, "archive", "--format=tar", to_file, commit.decode().strip())
        with tarfile.open(archive) as tar:
            tar.extractall(tree, filter=_inside)  # nosec B202: the filter keeps it inside
        old = tree / inside
        if not old.is_file():
            raise WrongUse(
                f"--old-ref {revision}: {inside} is not in that revision",
                "It was in another place then, or did not exist yet.",
                "Give the old file itself: --old OLD.py",
            )
        with in_revision(top, tree):
            yield f"{old}:{name}" if name else str(old)


def _inside(member: tarfile.TarInfo, tree: str) -> tarfile.TarInfo | None:
    """Leave out what would lie outside of the folder, such as a link to an absolute path."""
    try:
        return tarfile.data_filter(member, tree)
    except tarfile.FilterError:
        return None


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
