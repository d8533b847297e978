"""A few ratios in half a minute, held against those of docs/benchmarks.json.

    python bench/quick [--keep]

Each is processor time beside a yardstick that runs in the same seconds, so another machine or a
busy one gives nearly the same. A ratio that is twice what was kept is measured again, and fails
if no round comes below: something has become half as fast. `--keep` writes the ratios down anew.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measure import (
    FLOODMARK,
    best,
    call_cpu_seconds,
    command_cpu_seconds,
    write_checkpoint,
)

from floodmark import api

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs" / "benchmarks.json"
TWICE = 2.0
AGAIN = 4
GOLDEN = ROOT / "tests" / "golden" / "4.2" / "sales-hdfs" / "checkpoint"


class Entry(NamedTuple):
    """What the yardstick makes of a line."""

    number: int
    words: tuple[str, ...]
    told: dict[str, Any]


def yardstick(folder: Path) -> None:
    """Work that no change of the project makes slower, and of the same kind as the project's.

    It reads small files, parses lines of JSON and makes tuples of them: where a crowded
    machine slows such work, as its caches are shared, it slows both.
    """
    if not folder.is_dir():
        folder.mkdir()
        line = json.dumps({str(number): [number, str(number)] for number in range(20)})
        for number in range(300):
            (folder / str(number)).write_text(f"v1\n{line}\n" * 2)
    for _ in range(2):
        entries = []
        for path in sorted(folder.iterdir()):
            for line in path.read_text().splitlines():
                if line.startswith("{"):
                    told = json.loads(line)
                    words = tuple(f"{key}: {value}" for key, value in told.items())
                    entries.append(Entry(int(path.name), words, told))
        sorted(entries, key=lambda entry: (entry.words, entry.number))


def measures(folder: Path) -> dict[str, Callable[[], float]]:
    """Name → the processor seconds of the work, once."""
    many = str(write_checkpoint(folder / "many", 1000))
    root = folder / "root"
    for number in range(100):
        write_checkpoint(root / f"stream-{number}", batches=5)
    source = folder / "source"
    source.mkdir()
    for number in range(60):
        text = (ROOT / "examples" / "sales.py").read_text() * 4
        (source / f"module_{number}.py").write_text(text)
    state = str(shutil.copytree(GOLDEN, folder / "state"))

    def read_state() -> None:
        for _ in range(20):
            api.state(state).to_arrow()

    def repeat(work: Callable[[], object], times: int) -> Callable[[], float]:
        return lambda: call_cpu_seconds(lambda: [work() for _ in range(times)])

    return {
        "batches of 1,000": repeat(lambda: api.batches(many), 2),
        "inspect of 1,000 batches": repeat(lambda: api.inspect(many), 6),
        "scan of 100 checkpoints": repeat(lambda: list(api.scan([str(root)])), 1),
        "doctor of 1,000 batches": repeat(lambda: api.doctor(many), 2),
        "lint of 60 files": repeat(lambda: api.lint([str(source)]), 1),
        "upgrade, planned": repeat(lambda: api.upgrade(many, str(folder / "new")), 2),
        "state of a small checkpoint, 20 times": lambda: call_cpu_seconds(read_state),
    }


def ratios(folder: Path, kept: dict[str, float]) -> dict[str, float]:
    found = {}
    for name, measure in measures(folder).items():
        measure()  # loads what it needs
        beside = partial(call_cpu_seconds, partial(yardstick, folder / "yardstick"))
        found[name] = ratio(3, measure, beside, kept.get(name))
    name = "the command, in starts of python"
    command = partial(command_cpu_seconds, [FLOODMARK, "inspect", str(GOLDEN)])
    bare = partial(command_cpu_seconds, [sys.executable, "-c", "pass"])
    found[name] = ratio(4, command, bare, kept.get(name))
    return found


def ratio(
    rounds: int, measure: Callable[[], float], beside: Callable[[], float], before: float | None
) -> float:
    """Of the best times. A noisy minute must not fail: then it is measured again, and longer."""
    work, stick = best(rounds, measure, beside)
    for _ in range(AGAIN):
        if before is None or work / stick <= before * TWICE:
            break
        more, other = best(rounds, measure, beside)
        work, stick = min((work, stick), (more, other), key=lambda pair: pair[0] / pair[1])
    return work / stick


def main() -> int:
    kept = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    keep = "--keep" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        found = ratios(Path(folder), {} if keep else kept["quick"])
    if keep:
        kept["quick"] = {name: round(ratio, 3) for name, ratio in found.items()}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        print(f"{len(found)} ratios kept in {KEPT.relative_to(ROOT)}")
        return 0
    slower = 0
    for name, ratio in found.items():
        before = kept["quick"].get(name)
        bad = before is not None and ratio > before * TWICE
        slower += bad
        told = "new" if before is None else f"was {before:.3g}"
        print(f"{'SLOWER' if bad else 'ok    '} {name}: {ratio:.3g} ({told})")
    if slower:
        print("Half as fast as before: find out why, or keep it with: python bench/quick --keep")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
