"""Builds the site in site/ with MkDocs and with Zensical, and fails at a warning of either.

Both work on a copy: `zensical build --clean` empties the `.cache` beside mkdocs.yml, which in the
checkout holds the servers that `make services` fetched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILDS = (
    ("mkdocs", "build", "--strict", "--site-dir", "with-mkdocs"),
    ("zensical", "build", "--strict", "--clean"),
)


def warned(folder: Path, program: str, *arguments: str) -> bool:
    """Whether one generator fails or warns, whose words are then shown."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"},
    )
    bad = done.returncode != 0 or "warning" in done.stdout.lower()
    if bad:
        print(f"{program} ended with exit status {done.returncode}\n{done.stdout}", file=sys.stderr)
    return bad


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="floodmark-site-") as made:
        folder = Path(made)
        shutil.copytree(ROOT / "docs", folder / "docs")
        shutil.copy(ROOT / "mkdocs.yml", folder)
        bad = [warned(folder, *build) for build in BUILDS]
        if any(bad):
            return 1
        shutil.rmtree(ROOT / "site", ignore_errors=True)
        shutil.move(folder / "site", ROOT / "site")
    return 0


if __name__ == "__main__":
    sys.exit(main())
