"""Formats a plan in a few lines, for Python; the command line shows more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from floodmark.changes.plan import Plan
from floodmark.checkpoint.text import several


def change_text(plan: Plan, executed: bool, words: str) -> list[str]:
    lines = [plan.title, *_steps(plan), *plan.notes]
    lines += [f"{item.sink}: {item.words}" for item in plan.consequences]
    if executed or words:
        return [*lines, words]
    if not plan.steps:
        return [*lines, "There is nothing to carry out."]
    names = ", ".join(repr(name) for name in plan.unaccepted)
    accept = f"accept=[{names}]" if names else ""
    return [*lines, f"Nothing has been changed. Carry it out with .apply({accept})"]


def change_rows(
    plan: Plan, executed: bool, words: str
) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return the same for a notebook: the steps as rows, and the sentences after them."""
    rows = list(_grouped(plan))
    return rows, change_text(plan, executed, words)[1 + len(rows) :]


def _steps(plan: Plan) -> Iterator[str]:
    for do, paths, why in _grouped(plan):
        yield f"  {do} {paths}: {why}"


def _grouped(plan: Plan) -> Iterator[tuple[str, str, str]]:
    for (do, why), group in groupby(plan.steps, key=attrgetter("do", "why")):
        paths = [step.path for step in group]
        more = f" … {paths[-1]} ({several(len(paths), 'file')})" if len(paths) > 1 else ""
        yield do, f"{paths[0]}{more}", why
