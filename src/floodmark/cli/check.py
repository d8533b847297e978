"""`floodmark check`: say whether changed code can go on with a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from floodmark import api
from floodmark.addresses import public_url
from floodmark.checkpoint.layout import STARTS
from floodmark.cli import options
from floodmark.cli.text import ci_reports, echo, style, wrapped

if TYPE_CHECKING:
    from floodmark.rules.restarts.reason import Judgement, Reason

_WIDTH = 96
_ANSWERS = {
    "same": "Yes: nothing that matters to the checkpoint has changed.",
    "compatible": "Yes: the new code can go on with this checkpoint.",
    "needs-migration": "No: the state has to be carried over first.",
    "needs-new-checkpoint": "No: the new code needs a checkpoint of its own.",
    "unknown": "Floodmark cannot tell for sure.",
}
_COLOURS = {"same": "green", "compatible": "green", "unknown": "yellow"}


@click.command("check", cls=options.TakesScript)
@click.argument("checkpoint", metavar="CP|OUTLINE")
@click.argument("application", metavar="APP.py[:NAME]")
@options.settings
@click.option("--old", metavar="OLD.py[:P]", help="The code that made the checkpoint.")
@options.old_ref
@click.option(
    "--adopt", is_flag=True, help="Record the old code as that of the last start, in CP/_floodmark."
)
@click.option(
    "--accept",
    multiple=True,
    metavar="RULE",
    help="A change that Spark takes without a warning, and that you intend; repeatable.",
)
@click.option(
    "--rehearse", is_flag=True, help="Let Spark run one batch on a fork; its result decides."
)
@click.option(
    "--cap-rows",
    type=click.IntRange(min=0),
    metavar="N",
    default=1000,
    show_default=True,
    help="The most records that a source gives to the rehearsal; 0 is no limit.",
)
@click.option(
    "--empty-sources", is_flag=True, help="Rehearse with sources that give no records at all."
)
@click.option(
    "--scratch",
    metavar="DIR",
    help="An empty folder for the fork; on a cluster one that all its machines see.",
)
@options.spark_log
@options.script
@options.spark
@ci_reports.option()
@options.storage
@options.as_json
def command(
    checkpoint: str, application: str, form: str | None, as_json: bool, **named: Any
) -> int:
    """Say whether changed code can go on with a checkpoint: what changed, and what to do.

    In place of CP an outline of it will do, which `floodmark outline` writes.

    APP.py is any PySpark script or notebook, or a file of pipelines; a script's own arguments
    follow two dashes. floodmark runs it, but no query starts and nothing is written: checkpoint,
    sink, tables and files stay as they are. Exits 1 if the answer is not yes.
    """
    ci_reports.refuse_two_forms(form, as_json)
    is_document = as_json or form is not None
    with options.only_the_document(is_document):
        judgement = api.check(checkpoint, application, stdout_to_stderr=is_document, **named)
    if as_json:
        options.show_json(judgement)
    elif form is not None:
        ci_reports.show(ci_reports.of_judgement(judgement, application), form)
    else:
        echo(text(judgement, checkpoint, application))
    if named["adopt"]:
        old = named["old"] or f"{application} of {named['old_ref']}"
        noted = f"Noted as the code of the last start, in {public_url(checkpoint)}/{STARTS}: {old}"
        echo(noted if is_document else f"\n{noted}", err=is_document)
    return 0 if judgement.verdict.is_yes else 1


def text(judgement: Judgement, checkpoint: str, application: str) -> str:
    verdict = judgement.verdict.value
    colour = _COLOURS.get(verdict, "red")
    lines = [
        f"{style(public_url(checkpoint), 'bold')} and {style(application, 'bold')}: "
        f"{style(verdict, 'bold', colour)}",
        _ANSWERS[verdict],
    ]
    for reason in judgement.reasons:
        lines += ["", *_told(reason, judgement.command)]
    if judgement.command is not None:
        lines += ["", "Carry the state over, all changes at once:", f"  {judgement.command}"]
        lines += _wrapped("", judgement.then) if judgement.then else []
    if judgement.decided_by == "rehearsal":
        from floodmark.rules.compatibility.refused_in_rehearsal import RULE as REFUSED

        failed = any(reason.code == REFUSED.code for reason in judgement.reasons)
        has = "tried to run one batch of it" if failed else "run one batch of it"
        lines += ["", f"Spark has {has} on a fork of the checkpoint."]
    elif not judgement.verdict.is_yes:
        lines += ["", "By the rules. --rehearse lets Spark itself try, on a fork."]
    return "\n".join(lines)


def _told(reason: Reason, command: str | None) -> list[str]:
    colour = _COLOURS.get(reason.verdict.value, "red")
    quiet = ", and Spark would not say so" if reason.silent and not reason.verdict.is_yes else ""
    return [
        f"{style(reason.verdict.value, colour)}  {style(reason.rule, 'bold')} ({reason.code})"
        f"{quiet}",
        *_wrapped(f"{reason.where}  ", reason.what),
        *_wrapped("why  ", reason.why),
        *_wrapped("do   ", reason.do.removeprefix(f"{command}\n")),
    ]


def _wrapped(label: str, words: str) -> list[str]:
    return wrapped(f"  {label}", words, _WIDTH, min(len(label), 20) + 2)
