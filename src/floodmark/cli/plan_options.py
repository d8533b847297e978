"""The options and the printed plan that all changing verbs share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import count, echo, size, style, table, terminal_columns
from floodmark.visible import one_line

if TYPE_CHECKING:
    from floodmark.changes.apply import Change
    from floodmark.changes.plan import Plan
    from floodmark.changes.plan.steps import Step

_Function = TypeVar("_Function", bound=Callable[..., Any])
_SHOWN = 4
_WIDEST = 44


execute = click.option(
    "--execute", is_flag=True, help="Execute the plan. Without this, nothing is changed."
)


def _writable(_ctx: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Check that the file can be written before anything is executed: later is too late."""
    if value is not None:
        import os
        from pathlib import Path

        folder = Path(value).parent
        try:
            # from Python 3.14 on, is_dir keeps every error to itself
            with suppress(FileNotFoundError):
                Path(value).stat()
            fits = folder.is_dir() and not Path(value).is_dir() and os.access(folder, os.W_OK)
        except OSError:  # the name is longer than the file system allows
            fits = False
        if not fits:
            raise click.BadParameter(
                f"{value!r} cannot be written: name a file in a folder that is there"
            )
    return value


out = click.option(
    "--out",
    metavar="PLAN.json",
    callback=_writable,
    help="Save the plan; `apply` carries it out.",
)


read_data = click.option(
    "--read-data",
    is_flag=True,
    help="Read the state that is needed, and compare copies by content, not by size.",
)


def accept(*names: str) -> Callable[[_Function], _Function]:
    return click.option(
        "--accept",
        multiple=True,
        type=click.Choice(names),
        help="Continue in spite of the refusal of this name.",
    )


def _seconds(_ctx: click.Context, _option: click.Parameter, value: str | None) -> float:
    from floodmark.api.arguments import seconds

    return seconds(value)


watch = click.option(
    "--watch",
    metavar="TIME",
    callback=_seconds,
    help="Watch CP for this long first, such as 2m, and say whether a query writes to it.",
)


changing = options.together(
    options.as_json,
    options.storage,
    click.option(
        "--wait",
        type=options.Seconds(min=0),
        metavar="SECONDS",
        help="Wait this long for a running query to stop.",
    ),
    out,
    execute,
)
"""Add --execute, --out, --wait, --storage and --json."""


def carry_out(
    verb: Callable[..., Change],
    *places: str,
    as_json: bool,
    out: str | None = None,
    execute: bool = False,
    wait: float | None = None,
    storage: dict[str, Any] | None = None,
    read_data: bool = False,
    watch: float = 0.0,
    doubts: tuple[str, ...] = (),
    **named: Any,
) -> Change:
    """Call a function of the API with the options of its command, and show the change.

    `doubts` are names that the user accepts, for verbs without names of their own.
    """
    from floodmark.changes.apply import Carrying

    how = Carrying(execute, wait, storage, read_data=read_data, accept=doubts, watch_seconds=watch)
    change = verb(*places, carrying=how, **named)
    show(change, as_json, out)
    return change


def show(change: Change, as_json: bool, out: str | None = None) -> None:
    if out is not None:
        from floodmark.changes.plan.saved import save_plan

        save_plan(change.plan, out)
    if as_json:
        options.show_json(change.as_json)
        return
    echo(render(change, out))


def render(change: Change, out: str | None = None) -> str:
    plan = change.plan
    lines = [style(one_line(plan.title), "bold")]
    if plan.sink is not None:
        # Changes outside the checkpoint come first, and in full.
        lines += [
            "",
            f"  Outside of the checkpoint, the file sink's log changes: {one_line(plan.sink)}",
        ]
    if plan.steps:
        lines += ["", table(list(_rows(plan)))]
    if plan.notes:
        lines += ["", *(line for note in plan.notes for line in _lines(one_line(note)))]
    if plan.consequences:
        lines += ["", "  What it means for the sink:"]
        rows = [(item.sink, _mark(item.words, item.loses_or_repeats)) for item in plan.consequences]
        lines.append(table(rows, "    "))
    lines += ["", _ending(change, out)]
    return "\n".join(lines)


def _lines(note: str) -> list[str]:
    if terminal_columns() is None:
        return [f"  {note}"]
    from floodmark.cli.text.prose import prose

    return prose(note, "  ")


def _mark(words: str, marked: bool) -> str:
    return style(words, "yellow") if marked else words


def _ending(change: Change, out: str | None) -> str:
    if change.executed or change.words:
        return change.words
    if not change.plan.steps:
        return "There is nothing to carry out."
    accept = [part for name in change.plan.unaccepted for part in ("--accept", name)]
    if out is None:
        from floodmark.cli.again import again  # a plan that is executed does not need it

        given = click.get_current_context().find_root().obj
        return f"Nothing has been changed. Carry it out:\n  {again(given, *accept, '--execute')}"
    named = "".join(f"{part} " for part in accept)
    place = shlex.quote(out)
    saved = f"It is saved: floodmark apply {place}"
    if accept:
        named_again = f"{named}--out {place}"
        saved = f"It is saved, but cannot be applied as it is. Plan it again with {named_again}"
    return f"Nothing has been changed. Carry it out with {named}--execute. {saved}"


def _rows(plan: Plan) -> Iterator[tuple[str, str, str]]:
    for (do, why), group in groupby(plan.steps, key=lambda step: (step.do, step.why)):
        yield do, _paths(list(group)), why


def _paths(steps: list[Step]) -> str:
    shown = [step for step in steps if not step.path.rsplit("/", 1)[-1].startswith(".")] or steps
    named = list(_ranges([step.path for step in shown]))
    if len(named) <= _SHOWN and len(", ".join(named)) <= _WIDEST:
        return ", ".join(named)
    # Names are shown without the hidden side files; a number counts all files.
    folder = _common_folder([step.path for step in shown])
    known = sum(step.size or 0 for step in steps)
    bytes_ = f", {size(known)}" if known else ""
    return f"{count(len(steps), 'file')}{f' in {folder}' if folder else ''}{bytes_}"


def _ranges(paths: list[str]) -> Iterator[str]:
    """Return ranges, such as offsets/5–6 for offsets/5 and offsets/6."""
    run: list[int] = []
    folder = ""
    for path in [*paths, "/"]:
        parent, _, name = path.rpartition("/")
        number = int(name) if name.isdecimal() else None
        if run and (parent != folder or number is None or abs(number - run[-1]) != 1):
            low, high = min(run), max(run)
            yield f"{folder}/{low}" + (f"–{high}" if high > low else "")
            run = []
        if number is not None:
            folder = parent
            run.append(number)
        elif path != "/":
            yield path


def _common_folder(paths: list[str]) -> str:
    first, *rest = [path.split("/")[:-1] for path in paths]
    for other in rest:
        first = [a for a, b in zip(first, other, strict=False) if a == b][: len(first)]
    return "/".join(first)


def new_place(checkpoint: str, new: str | None, storage: dict[str, Any]) -> str:
    """Return NEW; for a pipeline's flow the default is the number that the pipeline uses next."""
    found = new or api.next_checkpoint(checkpoint, storage)
    if found is None:
        raise click.UsageError("Missing argument 'NEW'.")
    return found
