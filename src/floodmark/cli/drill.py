"""`floodmark drill`: kill a pipeline's driver at each point of a batch: what is lost?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from floodmark import api
from floodmark.cli import options
from floodmark.cli.text import count, echo, say, style, table

if TYPE_CHECKING:
    from floodmark.api.drilling import Drill
    from floodmark.drills.advice import DrilledSink
    from floodmark.drills.sink_difference import PointResult


def _names(_ctx: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


@click.command("drill", cls=options.TakesScript)
@click.argument("target", metavar="APP.py[:NAME]")
@click.option(
    "--input",
    "input",
    multiple=True,
    required=True,
    metavar="DIR|FILE|TOPIC",
    help="The sample that the query reads in place of its source: a folder of files, a Delta "
    "table, a file of JSON lines, or a Kafka topic (kafka://HOST:PORT/TOPIC). Once for each "
    "stream that the code reads, in its order.",
)
@click.option(
    "--sink",
    metavar="URL",
    help="A PostgreSQL test database with the pipeline's tables; the drill works on copies of it. "
    "Files, Delta tables and SQLite are seen without it.",
)
@click.option(
    "--point",
    multiple=True,
    metavar="POINT",
    help="Only this point; repeatable. [default: all that the pipeline has]",
)
@click.option(
    "--random",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="Kill it so often at a random time, too.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="For the random times."
)
@click.option(
    "--ignore",
    metavar="COLUMN,…",
    callback=_names,
    help="Columns that differ from run to run, such as the time of writing.",
)
@options.limit("Show at most N rows of each kind.", default=5)
@click.option(
    "--fresh",
    is_flag=True,
    help="Begin with a new checkpoint and empty sinks. [default: with copies of the pipeline's "
    "own, where they are there]",
)
@click.option(
    "--scratch",
    metavar="DIR",
    help="An empty folder for checkpoints and sinks of the drill; on a cluster one that all its "
    "machines see. [default: a temporary one]",
)
@options.settings
@options.script
@options.spark
@options.as_json
def command(target: str, as_json: bool, **named: Any) -> int:
    """Kill a pipeline's driver at each point of a batch, and compare what its sinks hold.

    The query runs over a sample, undisturbed, and then again with its driver killed and started
    anew: after-offset, during-state, during-sink, after-sink, after-commit, at random. Each run
    has copies of the pipeline's checkpoint and sinks in a scratch place, or new ones where there
    are none yet; its own are not touched.
    Exits 1 if anything was lost or repeated.
    """
    found = api.drill(target, say=lambda words: say(f"floodmark: {words}"), **named)
    if as_json:
        options.show_json(found)
    else:
        echo(text(found))
    return 0 if found.survived else 1


def text(found: Drill) -> str:
    batches = "batch" if found.batches == 1 else "batches"
    about = f"{count(found.rows, 'row')} in {found.batches:,} {batches}"
    lines = [style(f"{found.application}: {about}", "bold"), ""]
    sinks = [(f"sink {n}", one.kind, one.place, _by(one)) for n, one in enumerate(found.sinks)]
    lines += [_begins(found), "", table(sinks), "", table([_line(one) for one in found.points])]
    shown = [line for one in found.points for line in _rows(one)]
    if shown:
        lines += ["", *shown]
    if found.refused:
        lines += ["", "Not carried out, and not compared:", *(f"  {one}" for one in found.refused)]
    if found.advice:
        lines += ["", *found.advice]
    return "\n".join([*lines, "", _verdict(found)])


def _begins(found: Drill) -> str:
    if found.copied_checkpoint is None:
        return f"Each run began with a new checkpoint: {found.why_new}."
    late = ""
    if found.late_rows:
        late = (
            f"\n{count(found.late_rows, 'row')} of the sample came after its watermark and "
            f"{'was' if found.late_rows == 1 else 'were'} dropped (--fresh begins without it)."
        )
    return (
        f"Each run began with a copy of {found.copied_checkpoint}, after batch "
        f"{found.begins_after}.{late}"
    )


def _by(sink: DrilledSink) -> str:
    by = "the query" if sink.by == "spark" else "its foreachBatch function"
    return f"written by {by}{', began as a copy' if sink.copied else ''}"


def _line(one: PointResult) -> tuple[str, str, str]:
    batch = "" if one.batch is None else f"batch {one.batch}"
    if one.point == "random" and one.hit:
        batch = f"{batch}, {one.hit}".removeprefix(", ")
    if one.survived is None:
        return one.point, batch, one.words
    if one.survived:
        return one.point, batch, style("survived", "green")
    told = [
        f"{count(number, 'row')} {words}"
        for number, words in (
            (one.lost, "lost"),
            (one.repeated, "repeated"),
            (one.wrong, "wrong"),
        )
        if number
    ]
    return one.point, batch, style(", ".join(told) or "the restart fails", "red")


def _rows(one: PointResult) -> Iterator[str]:
    from floodmark.cli.text.render_state import cell

    for place, sink in one.sinks.items():
        for words, rows, number in (
            ("lost", sink.lost_rows, sink.lost),
            ("repeated", sink.repeated_rows, sink.repeated),
            ("wrong", sink.wrong_rows, sink.wrong),
        ):
            if rows:
                more = f" … {number - len(rows):,} more" if number > len(rows) else ""
                yield f"{one.point}, {place}, {words}:"
                yield from (f"  {cell(dict(row))}" for row in rows)
                if more:
                    yield f" {more}"


def _verdict(found: Drill) -> str:
    if not found.survived:
        return "It does not survive. Its own checkpoint and sinks were not touched."
    missed = [one.point for one in found.points if one.survived is None]
    if missed:
        return f"Nothing was lost or repeated. Not tried: {', '.join(missed)}."
    if found.refused:
        return (
            "What was compared survives: nothing was lost, nothing was repeated. What was not "
            "carried out was not tried."
        )
    return "It survives: nothing was lost, nothing was repeated."
