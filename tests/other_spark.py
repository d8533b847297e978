"""Runs code with another Spark than the tests' own, in an environment that has that Spark alone."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What floodmark needs beside pyspark; the environments of other Sparks have only that.
NEEDED = ("click", "fsspec", "lz4", "cramjam", "google_crc32c", "rocksdict", "xxhash", "rich")


def python_of(version: str) -> Path:
    """The Python that has this Spark, made where it is missing, as for `make golden`."""
    sys.path.append(str(ROOT / "scripts"))
    try:
        from make_golden import home_of
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return Path(home_of(version)) / "bin" / "python"


def environment(place: Path, **more: str) -> dict[str, str]:
    """With floodmark and what it needs; `place` is a new folder for links to it."""
    paths = os.pathsep.join((str(ROOT / "src"), str(packages(place))))
    return {**os.environ, "PYTHONPATH": paths, **more}


def packages(place: Path) -> Path:
    place.mkdir()
    for name in NEEDED:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (place / source.name).symlink_to(source)
    return place
