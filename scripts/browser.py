"""Finds Chromium for the tests of pages, and installs Debian's where there is none.

    python scripts/browser.py

Playwright's own browsers are not downloaded: what the system has is used, or what CHROMIUM names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str:
    """The path of the program, or an end that says how to get it."""
    found = find()
    if found is None:
        found = install()
    return found


def find() -> str | None:
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> str:
    """Debian's package, where this user may install one."""
    apt = shutil.which("apt-get")
    if apt is not None and os.geteuid() == 0:
        print("Installing Chromium for the tests of pages", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        packages = ("chromium", "fonts-liberation")
        for arguments in (("update",), ("install", "-y", "--no-install-recommends", *packages)):
            subprocess.run([apt, "-qq", *arguments], check=True, env=quiet, stdout=sys.stderr)
        found = find()
        if found is not None:
            return found
    raise SystemExit(
        "There is no Chromium here, which the tests of pages need.\n"
        "  Install it with: apt-get install chromium (Debian, Ubuntu), or name one: CHROMIUM=PATH"
    )


if __name__ == "__main__":
    print(chromium())
