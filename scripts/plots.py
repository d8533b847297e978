"""Draws how something grows as an SVG, both axes by powers of ten."""

from __future__ import annotations

import math
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 560, 300, 74, 48, 44, 24
_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1b2330 }
  .title { font-weight: 600; font-size: 14px }
  .grid { stroke: #d5dbe6; stroke-width: 1 }
  .line { stroke: #2f5fd0; stroke-width: 2; fill: none }
  .even { stroke: #8793ab; stroke-width: 1.2; stroke-dasharray: 5 4 }
  circle { fill: #2f5fd0 }
"""


def growth_plot(series: dict[str, Any]) -> str:
    """The points, and a dashed line of what grows as fast as its number."""
    points = [(float(x), float(y)) for x, y in series["points"]]
    low_x, high_x = _decades([x for x, _ in points])
    low_y, high_y = _decades([y for _, y in points])

    def at(x: float, y: float) -> tuple[float, float]:
        along = (math.log10(x) - low_x) / (high_x - low_x)
        up = (math.log10(y) - low_y) / (high_y - low_y)
        inner = HEIGHT - BOTTOM - TOP
        return LEFT + along * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * inner

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
        f'<text class="title" x="16" y="26">{escape(series["name"])} by {escape(series["of"])}, '
        f"{escape(series['unit'])} (dashed: as fast as the number)</text>",
    ]
    for power in range(low_x, high_x + 1):
        x, y = at(10**power, 10**low_y)
        parts.append(f'<path class="grid" d="M{x:.1f},{TOP} V{y:.1f}"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 20:.1f}" text-anchor="middle">{_n(power)}</text>')
    for power in range(low_y, high_y + 1):
        x, y = at(10**low_x, 10**power)
        parts.append(f'<path class="grid" d="M{x:.1f},{y:.1f} H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{_n(power)}</text>')
    last_x, last_y = points[-1]
    first = max(points[0][0], 10**low_y * last_x / last_y)
    (x1, y1), (x2, y2) = at(first, last_y * first / last_x), at(last_x, last_y)
    parts.append(f'<path class="even" d="M{x1:.1f},{y1:.1f} L{x2:.1f},{y2:.1f}"/>')
    places = [at(x, y) for x, y in points]
    drawn = " L".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<path class="line" d="M{drawn}"/>')
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in places]
    return "\n".join([*parts, "</svg>\n"])


def _decades(values: list[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _n(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10**power:g}"
