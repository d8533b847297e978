"""Measures lint on a folder of other people's code: how many findings are true, rule by rule.

    python scripts/lint_precision.py CORPUS JUDGED.csv

CORPUS has a folder for each repository. JUDGED.csv has the columns file, line, code, true
(yes or no) and why; file is relative to CORPUS. Findings that the CSV does not judge are
printed as rows to be judged, and the script then exits with 1.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

from floodmark import api

Key = tuple[str, str, str]


def findings(corpus: Path) -> dict[Key, str]:
    """(file, line, code) → what was found. Each repository is linted on its own."""
    found = {}
    for repository in sorted(path for path in corpus.iterdir() if path.is_dir()):
        for item in api.lint([str(repository)]):
            path = Path(item.path).relative_to(corpus).as_posix()
            found[path, str(item.line or ""), item.code] = item.what
    return found


def judged(path: Path) -> dict[Key, bool]:
    with path.open(newline="") as rows:
        return {
            (row["file"], row["line"], row["code"]): row["true"].strip().lower() == "yes"
            for row in csv.DictReader(rows)
        }


def table(found: dict[Key, str], verdicts: dict[Key, bool]) -> list[str]:
    all_of: Counter[str] = Counter()
    true_of: Counter[str] = Counter()
    for key in found:
        all_of[key[2]] += 1
        true_of[key[2]] += verdicts[key]
    lines = ["| rule | findings | true | rate |", "|---|---|---|---|"]
    lines += [
        f"| {code} | {count} | {true_of[code]} | {true_of[code] / count:.0%} |"
        for code, count in sorted(all_of.items())
    ]
    total, true = sum(all_of.values()), sum(true_of.values())
    lines.append(f"| all | {total} | {true} | {true / max(total, 1):.1%} |")
    return lines


def main(corpus: Path, judgements: Path) -> int:
    found, verdicts = findings(corpus), judged(judgements)
    missing = [key for key in found if key not in verdicts]
    if missing:
        writer = csv.writer(sys.stdout)
        for key in missing:
            writer.writerow([*key, "?", found[key]])
        return 1
    files = [path for path in corpus.rglob("*") if path.suffix in (".py", ".ipynb")]
    print(f"{len(files)} files of {len([*corpus.iterdir()])} repositories")
    print("\n".join(table(found, verdicts)))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
