"""Runs bench/*.py and writes docs/benchmarks.md and docs/benchmarks.json from the results.

    python scripts/benchmarks.py [NAME…] [--limit SECONDS] [--report] [-- ARGUMENTS]

A script that misses a claim, or fails, does not stop the others. With names only those run, and
the results of the others stay as they were, each with its date. A script that takes longer than
the limit is cut off, and what it had measured is kept. `--report` runs none of them. Arguments
after two dashes go to the one script that is named: `keys -- --keys 1000000,100000000`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from plots import growth_plot

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "benchmarks.json"
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = "FLOODMARK_BENCH_RESULTS"
_MARKS = {"yes": "yes", "close": "close", "no": "**missed**"}
Results = dict[str, Any]


def scripts() -> dict[str, Path]:
    return {path.stem: path for path in sorted((ROOT / "bench").glob("*.py"))}


def run(path: Path, limit: float | None, arguments: list[str]) -> Results:
    """What one script measured, whether or not it ended well."""
    print(f"== {path.relative_to(ROOT)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "results.json"
        began = time.monotonic()
        status = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = subprocess.run(
                [sys.executable, str(path), *arguments],
                env={**os.environ, RESULTS: str(place)},
                timeout=limit,
                check=False,
            ).returncode
        told: Results = json.loads(place.read_text()) if place.is_file() else {}
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds": round(time.monotonic() - began),
        "arguments": _told_arguments(arguments),
        "ended": _ended(told, status),
        "machine": machine(),
        "claims": [],
        "series": [],
        **told,
    }


def _told_arguments(arguments: list[str]) -> list[str]:
    """Leave out where the data lay, and that it stays there: that is of this machine alone."""
    if "--folder" not in arguments:
        return arguments
    at = arguments.index("--folder")
    return [one for one in arguments[:at] + arguments[at + 2 :] if one != "--keep"]


def _ended(told: Results, status: int | None) -> str:
    if status is None:
        return "cut off by its limit"
    missed = any(claim["held"] == "no" for claim in told.get("claims", ()))
    whole = bool(told) and status == (1 if missed else 0)
    return "whole" if whole else f"failed with exit status {status}"


def machine() -> dict[str, str]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
        "pyarrow": version("pyarrow"),
        "load": f"{os.getloadavg()[1]:.1f}",  # of the last five minutes, other people's work too
    }


def page(kept: Results) -> str:
    return "\n".join(_page(kept)) + "\n"


def _page(kept: Results) -> Iterator[str]:
    results = kept.get("results", {})
    yield "# Benchmarks"
    yield ""
    yield "Each line is a ratio of two measures that were taken in turns in one run: Floodmark"
    yield "beside what you would use instead. Ratios survive a busy machine; seconds do not."
    yield "`make bench` makes this page, [benchmarks.json](benchmarks.json) has the numbers, and"
    yield "`make bench-quick`, a part of `make test`, fails when something has become half as fast."
    yield ""
    yield "*close* is beyond its limit by less than the noise of a shared machine, 15%."
    yield from ("", "| what | measured | limit | held | date |", "|---|---|---|---|---|")
    for name in scripts():
        for claim in results.get(name, {}).get("claims", ()):
            limit = f"{claim['bound']} {claim['limit']:g}"
            yield (
                f"| [{name}](#{name}): {claim['claim']} | {claim['measured']:.3g} | {limit} "
                f"| {_MARKS[claim['held']]} | {results[name]['date']} |"
            )
    missing = [name for name in scripts() if not results.get(name, {}).get("claims")]
    if missing:
        yield from ("", f"Not measured yet on this machine: {', '.join(missing)}.")
    plots = [(name, series) for name, one in results.items() for series in one.get("series", ())]
    if plots:
        yield from ("", "## How it grows", "")
        yield from (f"![{alt(series)}](pictures/{plot_name(series)})\n" for _, series in plots)
    yield from _scripts(results)


def _scripts(results: Results) -> Iterator[str]:
    yield from ("", "## What is measured")
    for name, path in scripts().items():
        words = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n    ")[0]
        yield from ("", f"### {name}", "", " ".join(words.split("\n\n")[0].split()))
        if name in results:
            one = results[name]
            where = one["machine"]
            yield ""
            yield (
                f"Last run {one['date']}, {one['seconds']} s: {where['system']}, "
                f"{where['cores']} cores, {where['memory']}, Python {where['python']}, "
                f"Spark {where['pyspark']}, pyarrow {where['pyarrow']}.{load(where)} "
                f"{given(one)}It ended {one['ended']}."
            )
            if "note" in one:  # written by hand; the next run removes it
                yield from ("", f"**Note.** {one['note']}")


def given(one: Results) -> str:
    arguments = " ".join(one.get("arguments", ()))
    return f"Run with `{arguments}`. " if arguments else ""


def load(where: dict[str, str]) -> str:
    if "load" not in where:
        return ""
    busy = float(where["load"])
    others = ", shared with other work" if busy > 1.5 * int(where["cores"]) else ""
    return f" Load {busy:g} on {where['cores']} cores{others}."


def alt(series: Results) -> str:
    points = ", ".join(f"{number:,}: {value:.3g}" for number, value in series["points"])
    return f"{series['name']} by {series['of']}, {series['unit']}: {points}"


def plot_name(series: Results) -> str:
    words = f"growth-{series['name']}-{series['of']}".replace("--", "").lower()
    return "-".join("".join(c if c.isalnum() else " " for c in words).split()) + ".svg"


def write(kept: Results) -> None:
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept))
    for one in kept.get("results", {}).values():
        for series in one.get("series", ()):
            (ROOT / "docs" / "pictures" / plot_name(series)).write_text(growth_plot(series))


def joined(new: Results) -> Results:
    """What is kept, with new results; read again, because another run may have written."""
    kept: Results = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    kept.setdefault("results", {}).update(new)
    return kept


def table(results: Results) -> str:
    lines = []
    for name, one in results.items():
        counted = [claim["held"] for claim in one["claims"]]
        told = ", ".join(f"{counted.count(held)} {held}" for held in ("yes", "close", "no"))
        lines.append(f"{name:22} {one['seconds']:5} s   {told if counted else one['ended']}")
    return "\n".join(lines)


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before two dashes, and those after them."""
    if "--" not in words:
        return words, []
    place = words.index("--")
    return words[:place], words[place + 1 :]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, metavar="SECONDS")
    parser.add_argument("--report", action="store_true")
    own, arguments = split(sys.argv[1:])
    options = parser.parse_args(own)
    if arguments and len(options.names) != 1:
        parser.error("arguments after two dashes are for one script: name it")
    unknown = sorted(set(options.names) - set(scripts()))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}. There are: {', '.join(scripts())}")
        return 2
    ran = {}
    for name in () if options.report else options.names or scripts():
        ran[name] = run(scripts()[name], options.limit, arguments)
        write(joined({name: ran[name]}))  # a run that is cut off has kept what it measured
    write(joined({}))
    print(f"\n{table(ran)}\n\ndocs/benchmarks.md has them all.")
    bad = [one for one in ran.values() if not one["claims"] and not one["series"]]
    missed = [c for one in ran.values() for c in one["claims"] if c["held"] == "no"]
    return 1 if bad or missed else 0


if __name__ == "__main__":
    sys.exit(main())
