"""Fetches the Pythons of 3.10 to 3.14 that this machine lacks, for the tests of the release.

    python scripts/pythons.py

Debian has another Python in each of its suites. Their packages are unpacked into `.cache/pythons`,
each with the C library of its suite; nothing is installed. Where Debian's own mirror or key is
not there, as on other systems, the tests go on with the Pythons that are there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "pythons"
OFFERED = range(10, 15)
SUITES = {11: "bookworm", 13: "trixie", 14: "forky"}
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# The suite's own loader starts it: its libraries are newer than this machine's.
# $0 is the path of the environment's own bin/python, by which Python finds that environment.
START = """\
#!/bin/sh
usr=$(dirname "$(dirname "$(readlink -f "$0")")")
for loader in "$usr"/lib/*-linux-gnu/ld-linux*.so.*; do
    exec "$loader" --argv0 "$0" --library-path "${loader%/*}" "$usr/bin/program" "$@"
done
"""


class NotThere(Exception):
    """One sentence: why this Python cannot be had here."""


def working(minor: int) -> str | None:
    """A Python 3.x of this machine; what is on PATH may be no more than a name (pyenv's shims)."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    name = f"python3.{minor}"
    places = (shutil.which(name), *kept.glob(f"3.{minor}.*/bin/python"), _own(minor))
    return next((str(found) for found in places if found and _starts(found)), None)


def fetch(minor: int) -> Path:
    """Debian's, unpacked."""
    if minor not in SUITES:
        raise NotThere(f"no suite of Debian has Python 3.{minor}")
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb") or not KEYS.is_file():
        raise NotThere("only Debian's packages are fetched, and this is no Debian")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=FOLDER) as beside:
        folder = Path(beside)
        for package in _downloaded(minor, folder):
            _run("dpkg-deb", "-x", str(package), f"{beside}/unpacked")
        program = folder / "unpacked" / "usr" / "bin" / f"python3.{minor}"
        program.rename(program.with_name("program"))
        program.write_text(START)
        program.chmod(0o755)
        if not _starts(program):
            raise NotThere(f"Python 3.{minor} of Debian's {SUITES[minor]} does not start here")
        if not _own(minor).is_file():
            (folder / "unpacked").rename(_own(minor).parents[2])
    return _own(minor)


def _own(minor: int) -> Path:
    return FOLDER / f"3.{minor}" / "usr" / "bin" / f"python3.{minor}"


def _starts(python: str | Path) -> bool:
    try:
        done = subprocess.run([python, "-c", ""], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _downloaded(minor: int, folder: Path) -> list[Path]:
    """The suite's packages, checked with Debian's key; apt keeps what it knows in the folder.

    Its list of installed packages is empty, so that it names everything which Python needs.
    """
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    source = f"deb [signed-by={KEYS}] {_mirror()} {SUITES[minor]} main\n"
    (folder / "sources.list").write_text(source)
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::http::Timeout": 30,
        "Acquire::Retries": 1,
        "APT::Sandbox::User": "root",  # else a user who cannot enter the folder would write here
        "Debug::NoLocking": 1,
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    _run("apt-get", *options, "update", "-q", "--error-on=any")
    wanted = (f"python3.{minor}", "libstdc++6")  # wheels of other packages are written in C++
    download = ("install", "-q", "-y", "--download-only", "--no-install-recommends")
    _run("apt-get", *options, *download, *wanted)
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def _mirror() -> str:
    """Where this machine gets Debian's own packages from."""
    for asked in ("Label: Debian", "Created-By: Packages"):  # the first needs `apt-get update`
        told = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", asked).split()
        found = next((place for place in told if place.rstrip("/").endswith("/debian")), None)
        if found:
            return found
    raise NotThere("apt has no mirror of Debian")


def _run(*command: str) -> str:
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, env=quiet, capture_output=True, text=True, timeout=300, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotThere(f"`{command[0]}` failed: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise NotThere(f"`{command[0]}` failed: {said[-1].strip()}")
    return done.stdout


def main() -> int:
    for minor in OFFERED:
        began = time.perf_counter()
        found = working(minor)
        try:
            found = found or os.path.relpath(fetch(minor))
        except NotThere as error:
            print(f"python3.{minor:<4} not there: {error}", file=sys.stderr)
        else:
            print(f"python3.{minor:<4} {found} ({time.perf_counter() - began:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
