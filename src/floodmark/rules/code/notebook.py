"""Converts a notebook to Python, and keeps the place of each line in the notebook."""

from __future__ import annotations

import json
import re
from typing import Any

_MAGIC = re.compile(r"^(\s*)(%|!)(?!=)(.*)$")
_SHELLS = frozenset({"sh", "bash", "fs", "script"})


def to_python(text: str) -> tuple[str, list[int]]:
    """Return the code of all cells, and the line of the file for each of its lines.

    A notebook in another language gives no code. Raises ValueError if the text is not a notebook.
    """
    notebook = json.loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("it has no cells")
    if not _is_python(notebook):
        return "\n", [1]
    where = _Where(text)
    lines: list[str] = []
    places: list[int] = []
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        found = _lines(cell.get("source"), where)
        for line, place in _plain(found):
            lines.append(line)
            places.append(place)
    return "\n".join(lines) + "\n", places


def _is_python(notebook: dict[str, Any]) -> bool:
    """Whether the notebook does not name another language, such as Scala, as its own."""
    metadata = notebook.get("metadata")
    for part in ("language_info", "kernelspec"):
        found = metadata.get(part) if isinstance(metadata, dict) else None
        if not isinstance(found, dict):
            continue
        name = found.get("name" if part == "language_info" else "language")
        if isinstance(name, str):
            return name.lower().startswith(("python", "ipython"))
    return True


class _Where:
    """Finds a cell's strings in the file, each one after the one before it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1

    def of(self, source: str) -> int:
        for ascii_only in (True, False):
            needle = json.dumps(source, ensure_ascii=ascii_only)
            found = self.text.find(needle, self.at)
            if found >= 0:
                self.line += self.text.count("\n", self.at, found)
                self.at = found
                return self.line
        return self.line


def _lines(source: Any, where: _Where) -> list[tuple[str, int]]:
    parts = [source] if isinstance(source, str) else source if isinstance(source, list) else []
    found = []
    for part in parts:
        if isinstance(part, str):
            place = where.of(part)
            found += [(line, place) for line in part.rstrip("\n").split("\n")]
    return found


def _plain(lines: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return magic commands as the calls that IPython turns them into."""
    first = next((line for line, _ in lines if line.strip()), "")
    if first.startswith("%%") or (first.startswith("%") and first[1:].split(" ")[0] in _LANGUAGES):
        shell = first.lstrip("%").split(" ")[0] in _SHELLS
        return [
            (f"get_ipython().system({line!r})" if shell and at else "pass", place)
            for at, (line, place) in enumerate(lines)
        ]
    return [(_line(line), place) for line, place in lines]


_LANGUAGES = frozenset({"sql", "scala", "r", "md", "sh"})


def _line(line: str) -> str:
    magic = _MAGIC.match(line)
    if magic is None:
        return line
    indent, sign, rest = magic.groups()
    if sign == "!":
        return f"{indent}get_ipython().system({rest!r})"
    name, _, argument = rest.partition(" ")
    return f"{indent}get_ipython().run_line_magic({name!r}, {argument!r})"
