"""`floodmark compare`: run old and new code over past batches, and compare their rows."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import echo, say

if TYPE_CHECKING:
    from floodmark.api.proving import CodeComparison, RowDifference


def _names(_ctx: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


@click.command("compare", cls=options.TakesScript)
@click.argument("checkpoint", metavar="CP")
@click.option("--old", required=True, metavar="OLD.py[:NAME]", help="The code that made CP.")
@click.option("--new", required=True, metavar="NEW.py[:NAME]", help="The code to come.")
@options.batches("Which batches. [default: the newest, ten at most]")
@click.option(
    "--keys",
    metavar="COLUMN,…",
    callback=_names,
    help="Match rows by these columns. [default: what the query groups by, else whole rows]",
)
@options.limit("Show at most N differences. [default: 20]")
@click.option(
    "--export", metavar="DIR", help="All differences as JSON lines, into an empty folder."
)
@options.with_file("MIGRATION.py", "For the state, as `migrate` takes it.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="As `migrate` takes it.")
@click.option("--default", multiple=True, metavar="COLUMN=VALUE", help="As `migrate` takes it.")
@click.option("--merge", multiple=True, metavar="COLUMN=HOW", help="As `migrate` takes it.")
@click.option("--accept", multiple=True, metavar="NAME", help="As `migrate` takes it; repeatable.")
@click.option(
    "--scratch",
    metavar="DIR",
    help="An empty folder for the forks; on CP's disk, state is linked and not copied.",
)
@options.settings
@options.proof
def command(checkpoint: str, old: str, new: str, as_json: bool, **named: Any) -> int:
    """Run old and new code over the same past batches, and compare the rows that they put out.

    Both begin with the state before the first batch, on forks; for the new code it is carried
    over first where it has to be. Checkpoint and sink stay as they are, and foreachBatch
    functions are not called. Exits 1 if the rows differ.
    """
    # stdout belongs to the answer: the applications' output goes to stderr.
    with contextlib.redirect_stdout(sys.stderr):
        found = api.compare(checkpoint, old=old, new=new, say=say, **named)
    if as_json:
        options.show_json(found)
    else:
        echo(text(found, old, new))
    return 1 if found.differ else 0


def text(found: CodeComparison, old: str, new: str) -> str:
    from floodmark.cli.text import count, style, table

    several = found.first_batch != found.last_batch
    span = f"{found.first_batch} to {found.last_batch}" if several else f"{found.first_batch}"
    by = f"by {', '.join(found.keys)}" if found.keys else "as whole rows"
    lines = [
        style(f"{found.checkpoint}: {old} and {new}, batch{'es' * several} {span}", "bold"),
        "",
        table(
            [
                ("equal", f"{found.equal:,}"),
                ("changed", f"{found.changed:,}"),
                ("only old", f"{found.only_old:,}"),
                ("only new", f"{found.only_new:,}"),
            ]
        ),
        "",
        f"Rows were matched {by}.",
    ]
    for names, whose in ((found.columns_only_old, "old"), (found.columns_only_new, "new")):
        if names:
            lines.append(f"Only the {whose} code puts out: {', '.join(names)}.")
    if found.migrated:
        lines.append("The state was carried over for the new code first, as `migrate` does it.")
    if found.first_batch == 0:
        lines.append("Both began with batch 0 and no state, so none was carried over.")
    if found.sample:
        rows = [(f"batch {one.batch}", one.change, *_cells(one)) for one in found.sample]
        lines += ["", table(rows)]
    more = found.changed + found.only_old + found.only_new - len(found.sample)
    if more > 0:
        lines.append(f"  … {count(more, 'difference')} more; --limit N shows more.")
    if found.exported is not None:
        lines += ["", f"All differences are in {found.exported}."]
    lines += ["", "They differ." if found.differ else "Both put out the same."]
    if found.foreach_batch:
        whose = (
            "Both codes have"
            if len(found.foreach_batch) == 2
            else (f"The {found.foreach_batch[0]} code has")
        )
        lines.append(
            f"{whose} a foreachBatch function, which was not called: what it does with its rows "
            "was not compared."
        )
    return "\n".join(lines)


def _cells(one: RowDifference) -> tuple[str, ...]:
    """Return the key, and the other columns before and after: those that are equal tell nothing."""
    from floodmark.cli.text.render_state import before_after, cell

    alike = set(one.key)
    if len(one.old) == len(one.new) == 1:
        old, new = one.old[0], one.new[0]
        alike |= {name for name in old if name in new and old[name] == new[name]}
    old_rows, new_rows = (
        [{name: value for name, value in row.items() if name not in alike} for row in side]
        for side in (one.old, one.new)
    )
    change = before_after(old_rows, new_rows)
    return (cell(dict(one.key), 2), change) if one.key else (change,)
