"""Writes docs/rules from the rules themselves: `python scripts/rule_docs.py [--check]`."""

from __future__ import annotations

import sys
from pathlib import Path

from floodmark.rules.registry import Known, all_rules

REPOSITORY = "https://github.com/floodmark/floodmark/blob/main"
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "rules"
_HEADINGS = {
    "checkpoint": "Of checkpoints: `floodmark doctor`",
    "pipeline": "Of code: `floodmark lint`",
    "compatibility": "Of new code under an old checkpoint: `floodmark check`",
    "start": "Before a start: `floodmark run` and `floodmark.start`",
}


def pages() -> dict[str, str]:
    """File name → its text."""
    rules = all_rules()
    return {"README.md": _index(rules)} | {f"{known.rule.name}.md": _page(known) for known in rules}


def _index(rules: tuple[Known, ...]) -> str:
    lines = [
        "# Rules",
        "",
        "What `floodmark doctor`, `floodmark lint`, `floodmark check` and `floodmark run` look "
        "for. `floodmark explain FM101` prints a rule's story; these pages are made from it by "
        "`scripts/rule_docs.py`.",
    ]
    for family, heading in _HEADINGS.items():
        lines += [
            "",
            f"## {heading}",
            "",
            "| code | rule | severity | finds |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {rule.code} | [{rule.name}]({rule.name}.md) | {rule.severity.value} "
            f"| {_cell(rule.finds)} |"
            for rule in (known.rule for known in rules if known.family == family)
        ]
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


def _page(known: Known) -> str:
    rule, family = known.rule, known.family
    example = f"tests/broken/{family}/{rule.name.replace('-', '_')}.py"
    parts = [
        f"# {rule.name} ({rule.code})",
        f"**What it finds.** {rule.finds}",
        f"**Why it matters.** {rule.matters}",
        f"**On a restart.** {rule.restart}",
        f"**Instead.** {rule.instead}",
        f"Severity: {rule.severity.value}. Example: [{example}]({REPOSITORY}/{example}).",
    ]
    if family == "pipeline":
        parts.append(f"To allow it on a line: `# floodmark: allow {rule.name}`.")
    if known.check_start or known.check_starts or family == "compatibility":
        parts.append(f"`floodmark run` refuses it. To start all the same: `--allow {rule.name}`.")
    return "\n\n".join(parts) + "\n"


def stale() -> list[str]:
    """The pages that are not what the rules say, and those of rules that are gone."""
    wanted = pages()
    there = {path.name for path in FOLDER.glob("*.md")}
    return sorted(
        name
        for name in there | set(wanted)
        if name not in there or (FOLDER / name).read_text() != wanted.get(name)
    )


def write() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text)


def main() -> int:
    if "--check" in sys.argv:
        found = stale()
        if found:
            print(f"docs/rules is not current: {', '.join(found)}. Run scripts/rule_docs.py.")
        return 1 if found else 0
    write()
    print(f"{len(pages())} pages in {FOLDER.name}/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
