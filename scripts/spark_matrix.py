"""What works with which Spark, tried: `make matrix` writes docs/spark-versions.md.

Each Spark runs scripts/matrix_trial.py in an environment of its own; then the Spark of this
environment goes on from the checkpoints that the others have left, and later ones from its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]
other_spark: Any = import_module("other_spark")
VERSIONS: tuple[str, ...] = tuple(import_module("make_golden").PROTOBUF)
_trial: Any = import_module("matrix_trial")
CARRIED: str = _trial.CARRIED
STREAMS: tuple[str, ...] = tuple(_trial.STREAMS)
STEPS: tuple[str, ...] = _trial.STEPS
CONTINUED = "continued"
PAGE = ROOT / "docs" / "spark-versions.md"
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
WITHIN = 900.0
WORDS = {
    "running": "run a stream, and go on with it (`run`)",
    "reading": "read it (`inspect`, `state`)",
    "judging": "judge the same code and changed code (`check`)",
    "rehearsing": "rehearse (`check --rehearse`)",
    "migrating": "carry the state to changed code, and go on (`migrate`)",
    "repartitioning": "spread the state, and go on (`repartition`)",
    CARRIED: "go on under Spark {own} where this one stopped",
    CONTINUED: "go on under this one where Spark {own} stopped",
}
Found = dict[str, dict[str, str]]


def trial(python: Path, folder: Path, mode: str, packages: Path) -> Found:
    paths = os.pathsep.join((str(ROOT / "src"), str(packages)))
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": str(python)}
    environment.pop("SPARK_HOME", None)
    command = [str(python), str(ROOT / "scripts" / "matrix_trial.py"), str(folder), mode]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=WITHIN, check=False
        )
    except subprocess.TimeoutExpired:
        return _nothing(f"no: not done within {WITHIN:.0f} s", mode)
    sys.stderr.write(done.stderr[-6000:])
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        return _nothing(f"no: the trial ended with {done.returncode}", mode)
    found: Found = json.loads(lines[-1])
    return found


def _nothing(why: str, mode: str) -> Found:
    steps = STEPS if mode == "all" else (CARRIED,)
    return {stream: dict.fromkeys(steps, why) for stream in STREAMS}


def table(found: dict[str, Found], own: str) -> str:
    """Markdown; `yes` where all streams agree, else what each said."""
    lines = ["| | " + " | ".join(found) + " |", "|---|" + "---|" * len(found)]
    notes: list[str] = []
    for step, shape in WORDS.items():
        words = shape.format(own=own)
        cells = [_cell(one, step, f"{version}: {words}", notes) for version, one in found.items()]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _cell(found: Found, step: str, what: str, notes: list[str]) -> str:
    said = {stream: steps.get(step, "") for stream, steps in found.items()}
    if set(said.values()) == {"yes"}:
        return "yes"
    if not any(said.values()):
        return "–"
    for stream, words in said.items():
        if words != "yes":
            notes.append(f"- {what}, {stream}: {words}")
    good = [stream for stream, words in said.items() if words == "yes"]
    return f"{', '.join(good)} alone" if good else "no"


def main() -> int:
    own = metadata.version("pyspark")
    asked = sys.argv[1:] or list(VERSIONS)
    found: dict[str, Found] = {}
    with tempfile.TemporaryDirectory(prefix="floodmark-matrix-") as place:
        packages = other_spark.packages(Path(place, "packages"))
        for version in sorted({own, *asked}, key=lambda one: (one != own, one)):
            folder, python = Path(place, version), other_spark.python_of(version)
            print(f"Spark {version}", flush=True)
            found[version] = trial(python, folder, "all", packages)
            if version != own:
                add(found[version], trial(Path(sys.executable), folder, CARRIED, packages), CARRIED)
            if _numbers(version) > _numbers(own):
                later = trial(python, Path(place, own), CARRIED, packages)
                add(found[version], later, CONTINUED)
            print(json.dumps(found[version]), flush=True)
        found = {version: found[version] for version in asked}
    text = table(found, own)
    print(text)
    if not sys.argv[1:]:
        write(text)
    answers = [said for one in found.values() for steps in one.values() for said in steps.values()]
    return int(any(said != "yes" for said in answers))


def add(found: Found, carried: Found, step: str) -> None:
    for stream, steps in carried.items():
        found[stream][step] = steps[CARRIED]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def write(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
