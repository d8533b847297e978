"""Draws docs/diagrams/*.txt as docs/pictures/diagram-*.svg: `python scripts/diagrams.py [--check]`.

A text has a `title:`, and a `row:` a line of boxes. `->` is an arrow, `x>` an arrow that a crash
cuts; `|` begins a new line in a box, `!` before a box stresses it. `caption:` is a line of words.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
_LETTER, _LINE, _PAD, _GAP, _MARGIN = 7.3, 19, 12, 46, 18
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1b2330 }
  .title { font-weight: 600; font-size: 15px }
  .first { font-weight: 600 }
  .small { fill: #4a5568 }
  .box { fill: #f4f6fb; stroke: #8793ab; stroke-width: 1.2 }
  .stressed { fill: #e3ecff; stroke: #2f5fd0; stroke-width: 1.8 }
  .arrow { stroke: #4a5568; stroke-width: 1.5; fill: none; marker-end: url(#head) }
  .cut { stroke: #c0392b; stroke-dasharray: 4 4 }
"""


def draw(text: str) -> str:
    """The SVG of one text. Its ground is light, so that it reads on a dark page as well."""
    parts: list[str] = []
    width, y = 0.0, float(_MARGIN)
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "row":
            drawn, right, height = _row(rest.strip(), y)
            parts += drawn
            width, y = max(width, right), y + height + 16
        elif kind in ("title", "caption"):
            name = "title" if kind == "title" else "small"
            parts.append(f'<text class="{name}" x="{_MARGIN}" y="{y + 14:g}">{_text(rest)}</text>')
            width, y = max(width, _MARGIN * 2 + len(rest) * 7.8), y + 32
        elif line.strip():
            raise SystemExit(f"not a title, a row or a caption: {line!r}")
    size = f"0 0 {width:g} {y:g}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" width="{width:g}">',
            f"<style>{_STYLE}</style>",
            '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" '
            'orient="auto"><path d="M0,0 L9,4 L0,8 z" fill="#4a5568"/></marker></defs>',
            f'<rect width="{width:g}" height="{y:g}" rx="8" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _row(text: str, y: float) -> tuple[list[str], float, float]:
    """The boxes of a row, where it ends, and how high it is."""
    pieces = re.split(r"\s*(->|x>)\s*", text)
    boxes = [_lines(box) for box in pieces[::2]]
    height = max(len(lines) for lines, _ in boxes) * _LINE + _PAD
    drawn, x = [], float(_MARGIN)
    for number, (lines, stressed) in enumerate(boxes):
        if number:
            cut = " cut" if pieces[number * 2 - 1] == "x>" else ""
            middle = y + height / 2
            drawn.append(f'<path class="arrow{cut}" d="M{x + 5:g},{middle:g} h{_GAP - 10}"/>')
            x += _GAP
        wide = max(len(line) for line in lines) * _LETTER + 2 * _PAD
        name = "box stressed" if stressed else "box"
        drawn.append(
            f'<rect class="{name}" x="{x:g}" y="{y:g}" width="{wide:g}" height="{height}" rx="6"/>'
        )
        top = y + (height - len(lines) * _LINE) / 2
        for place, line in enumerate(lines):
            kind = "first" if place == 0 else "small"
            drawn.append(
                f'<text class="{kind}" x="{x + wide / 2:g}" y="{top + place * _LINE + 14:g}" '
                f'text-anchor="middle">{_text(line)}</text>'
            )
        x += wide
    return drawn, x + _MARGIN, height


def _lines(box: str) -> tuple[list[str], bool]:
    stressed = box.startswith("!")
    return [line.strip() for line in box.removeprefix("!").split("|")], stressed


def _text(words: str) -> str:
    return escape(words.strip(), quote=False)


def pictures() -> dict[Path, str]:
    return {
        DOCS / "pictures" / f"diagram-{path.stem}.svg": draw(path.read_text())
        for path in sorted((DOCS / "diagrams").glob("*.txt"))
    }


def stale() -> list[str]:
    return [
        path.name
        for path, text in pictures().items()
        if not path.is_file() or path.read_text() != text
    ]


def main() -> int:
    if "--check" in sys.argv:
        found = stale()
        if found:
            print(f"not as docs/diagrams says: {', '.join(found)}. Run scripts/diagrams.py.")
        return 1 if found else 0
    for path, text in pictures().items():
        path.write_text(text)
    print(f"{len(pictures())} diagrams in docs/pictures/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
