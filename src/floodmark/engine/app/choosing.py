"""Chooses one of a script's queries, or explains why none can be judged."""

from __future__ import annotations

from pathlib import Path

from floodmark.engine.app.caught_query import Caught
from floodmark.engine.app.dry_run import ScriptOutcome, innermost_line
from floodmark.engine.app.script_calls import NotCarriedOut
from floodmark.engine.app.time_limit import EndedAtOnce
from floodmark.engine.run.failure import sentence_of
from floodmark.errors import WrongUse

_LISTED = 12


def chosen(outcome: ScriptOutcome, checkpoints: tuple[str, ...]) -> Caught:
    """Return the query that `--query` names, or that has such a checkpoint, or the only one."""
    if not outcome.starts:
        raise no_start(outcome)
    wanted = outcome.options.query
    found = _named(outcome, wanted) if wanted is not None else _by_place(outcome, checkpoints)
    _refuse_shared(outcome, found)
    return found


def is_wanted(one: Caught, query: str | None, checkpoints: tuple[str, ...]) -> bool:
    """Whether the script may end, as this query is the one that is wanted."""
    if query is not None:
        return query in (one.name, str(one.number))
    if not checkpoints or one.checkpoint is None:
        return True
    return place_of(one.checkpoint) in {place_of(checkpoint) for checkpoint in checkpoints}


def place_of(location: str) -> str:
    place = location.removeprefix("file://").removeprefix("file:")
    return place.rstrip("/") if "://" in place else str(Path(place).resolve())


def _named(outcome: ScriptOutcome, wanted: str) -> Caught:
    found = [one for one in outcome.starts if wanted == one.name]
    found = found or [one for one in outcome.starts if wanted == str(one.number)]
    if len(found) == 1:
        return found[0]
    many = "several queries have" if found else "no query has"
    raise WrongUse(
        f"--query {wanted}: {many} this name in {outcome.source.path}",
        _listed(outcome),
        f"Choose one by its number: --query {outcome.starts[0].number}",
    )


def _by_place(outcome: ScriptOutcome, checkpoints: tuple[str, ...]) -> Caught:
    starts = outcome.starts
    places = {place_of(one) for one in checkpoints}
    same = [one for one in starts if one.checkpoint and place_of(one.checkpoint) in places]
    if same:
        return same[0]
    if len(starts) == 1:
        return starts[0]
    for one in starts:
        _refuse_shared(outcome, one)
    why = f"No query has the checkpoint {' or '.join(checkpoints)}.\n" if checkpoints else ""
    raise WrongUse(
        f"{outcome.source.path} starts {len(starts)} queries",
        why + _listed(outcome),
        f"Name one: --query {starts[0].name or starts[0].number}",
    )


def later_starts(outcome: ScriptOutcome, found: Caught) -> list[Caught]:
    """Return the starts that use the checkpoint of a query again, when it has ended."""
    return [one for one in _sharing(outcome, found) if found.number in one.ended]


def _sharing(outcome: ScriptOutcome, found: Caught) -> list[Caught]:
    if found.checkpoint is None:
        return []
    place = place_of(found.checkpoint)
    return [one for one in outcome.starts if one.checkpoint and place_of(one.checkpoint) == place]


def _refuse_shared(outcome: ScriptOutcome, found: Caught) -> None:
    both = _sharing(outcome, found)
    if all(one.number in two.ended for at, two in enumerate(both) for one in both[:at]):
        return  # one after the other, as a script does that catches up first
    raise WrongUse(
        f"{outcome.source.path} starts {len(both)} queries with one checkpoint: {found.checkpoint}",
        "A checkpoint belongs to one query: each would run the other's batches.\n"
        + "\n".join(one.words for one in both),
        "Give each its own checkpointLocation.",
    )


def _listed(outcome: ScriptOutcome) -> str:
    return "\n".join(one.words for one in outcome.starts)


def no_start(outcome: ScriptOutcome) -> WrongUse:
    """Return the error that best explains why a script has started nothing."""
    path, error = outcome.source.path, outcome.ended or outcome.failed_thread
    if outcome.limit_reached:
        return WrongUse(
            f"{path} has started no query in {outcome.options.limit_seconds:g} seconds",
            "It was still running, and was ended. Nothing was started and nothing was written.",
            "If it needs more time before it starts a query: --script-limit SECONDS.",
        )
    if outcome.asked_for_input is not None:
        return WrongUse(
            f"{path} waits for input before it starts a query",
            f"{path}, line {outcome.asked_for_input}: neither a scheduler nor floodmark gives it "
            "input.",
            "Let the script read an argument instead: script.py -- ARGUMENT",
        )
    if isinstance(error, SystemExit):
        return _exited(outcome, error)
    if error is not None:
        return _failed(outcome, error)
    return WrongUse(
        f"{path} ends without starting a streaming query",
        "It never calls writeStream….start() or toTable()." + _left_out(outcome),
        "If it starts one only under a condition, give its arguments after two dashes: "
        f"{path.name} -- ARGUMENT",
    )


def _exited(outcome: ScriptOutcome, error: SystemExit) -> WrongUse:
    path, status = outcome.source.path, error.code
    line, _ = innermost_line(outcome.source, error)
    at = f"{path}, line {line}. " if line is not None else ""
    said = f"exit status {status}" if isinstance(status, int) else f"the words: {status}"
    cause = error.__context__
    call = "os._exit()" if isinstance(error, EndedAtOnce) else "sys.exit()"
    why = f"{at}It calls {call} with {'exit status 0' if status is None else said}."
    if isinstance(cause, Exception):
        why += f"\nIt did so after {type(cause).__name__}: {sentence_of(cause)}"
    do = "Correct the error that it prints, above."
    if status == 2 and not outcome.options.arguments:
        do = f"If it needs arguments, give them after two dashes: {path.name} -- ARGUMENT"
    return WrongUse(f"{path} ends before it starts a query", why + _left_out(outcome), do)


def _failed(outcome: ScriptOutcome, error: BaseException) -> WrongUse:
    path = outcome.source.path
    line, text = innermost_line(outcome.source, error)
    where = f"{path}, line {line}: {text}" if line is not None else str(path)
    do = "Run it with `python` alone to see the whole traceback, or set FLOODMARK_DEBUG=1."
    if "sys.argv" in text and isinstance(error, IndexError):
        do = f"It needs arguments. Give them after two dashes: {path.name} -- ARGUMENT"
    elif isinstance(error, ModuleNotFoundError):
        name = (error.name or "").partition(".")[0]
        do = f"Install it beside floodmark: pip install {name}, or give it with --py-files."
    elif isinstance(error, NotCarriedOut):
        do = (
            "Let the script go on without it: catch PermissionError there, or do it after the "
            "start of the query."
        )
    elif outcome.acts:
        do = (
            "If it needs something that was left out, such as a table, make that once by hand, "
            "then repeat the command."
        )
    return WrongUse(
        f"{path} fails before it starts a query: {type(error).__name__}: {sentence_of(error)}",
        where + _left_out(outcome),
        do,
    )


def _left_out(outcome: ScriptOutcome) -> str:
    if not outcome.acts:
        return ""
    said = [f"line {act.line}: {act.words}" for act in outcome.acts[:_LISTED]]
    more = len(outcome.acts) - len(said)
    rest = [f"and {more} more"] if more else []
    return "\nNot carried out, as this verb only judges:\n" + "\n".join([*said, *rest])
