"""The campaign's numbers as the table of docs/reliability.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from compatibility.mutations.campaign import Result

BEGIN, END = "<!-- mutations: begin -->", "<!-- mutations: end -->"
# What a reader looks for, not the names of the edits.
_GROUPS = {
    "functions and their arguments": ("function", "operator", "flag", "number", "order", "by-hand"),
    "columns and redefined columns": ("column", "redefined", "everywhere", "side"),
    "SQL text, words and formats": ("sql", "word", "schema"),
    "windows, delays and gaps": ("duration",),
    "filters and steps": (
        "filter-added",
        "filters-swapped",
        "step-moved",
        "step-removed",
        "unique-added",
    ),
    "arguments left out": ("dropped",),
    "sides of joins and unions": ("sides",),
    "session settings": ("setting",),
    "source options and schemas": ("source-option", "file-schema"),
    "output modes and sinks": ("mode", "sink-key"),
}


def load(paths: Iterable[Path]) -> list[Result]:
    """The results in these files; of a mutation that was tried again, the last."""
    found = {}
    for path in paths:
        for line in path.read_text().splitlines():
            fields = json.loads(line)
            fields.pop("seconds", None)
            found[fields["name"]] = Result(**fields)
    return list(found.values())


def block(results: Sequence[Result]) -> str:
    """The sentences and the table."""
    counted = [one for one in results if one.counts]
    harmless = [one for one in counted if one.harmless]
    meant = [one for one in counted if not one.harmless]
    wrong = sum(one.outcome == "wrong" for one in counted)
    unknown = sum(one.verdict == "unknown" for one in harmless)
    other = sum(one.verdict in ("needs-migration", "needs-new-checkpoint") for one in harmless)
    share = 100 * unknown / max(1, len(harmless))
    lines = [
        f"**{len(counted)} mutations, {wrong} yes with a wrong result.** Of {len(harmless)} that "
        f"are harmless, {unknown} ({share:.0f} %) got `unknown` and {other} another no.",
        "",
        "| what is changed | mutations | yes, and right | yes, and the change is said "
        "| **yes, and wrong** | not yes |",
        "|---|---|---|---|---|---|",
    ]
    for name, kinds in _GROUPS.items():
        lines.append(_row(name, [one for one in meant if one.kind in kinds]))
    lines.append(_row("nothing that matters (harmless)", harmless))
    lines.append(_row("**all**", counted))
    carried = Counter(one.migrate for one in counted if one.migrate)
    if carried:
        lines += [
            "",
            f"`migrate` was asked for {sum(carried.values())} of those that are not yes: it "
            f"refused {carried['refused']}, carried {carried['right']} with right results and "
            f"{carried['said']} with a difference that its plan names, "
            f"and **{carried['wrong']}** wrongly.",
        ]
    return "\n".join(lines)


def _row(name: str, results: Sequence[Result]) -> str:
    counts = Counter(one.outcome for one in results)
    no = counts["refused"] + counts["needless"]
    cells = (len(results), counts["right"], counts["said"], counts["wrong"], no)
    return f"| {name} | " + " | ".join(str(cell) for cell in cells) + " |"


def put_into(page: Path, text: str) -> None:
    before, rest = page.read_text().split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
