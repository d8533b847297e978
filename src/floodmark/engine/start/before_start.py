"""Judges a query before it starts: refuses what would do harm, with a reason; makes nothing.

The engine gathers the facts for the rules of rules/start/, and for rules of other families that
have a `check_start`. `--allow NAME` starts the query in spite of a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from floodmark.checkpoint.conf_keys import CHECKPOINT_OPTION, FILE_MANAGER_CLASS
from floodmark.checkpoint.layout import NOTES, START_FILE
from floodmark.checkpoint.live_answers import LiveAnswers, SinkLog
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.registry import about
from floodmark.connectors.source import SourceOffset
from floodmark.engine.code.sink_log import ask_sink
from floodmark.engine.pipelines.start_positions import DeltaStart, parse_start
from floodmark.engine.spark.hadoop import qualified
from floodmark.engine.start.asking_sources import ask_before_start, positions
from floodmark.engine.start.changed_code import judge_code
from floodmark.engine.start.lease import in_use, live_holder
from floodmark.engine.start.query_to_start import QueryToStart
from floodmark.errors import FloodmarkError, InUse, NotReachable, Refused, WrongUse
from floodmark.rules.finding import Finding, Severity
from floodmark.rules.registry import find_rule, names_to_allow, start_checks
from floodmark.rules.start_inputs.situation import Situation, StartingSource

_Answer = TypeVar("_Answer")
IN_USE = "checkpoint-in-use"


def allowed_rules(names: Iterable[str]) -> frozenset[str]:
    """Return the checked names of `--allow`: a misspelt name would allow nothing."""
    known = names_to_allow()
    found = set()
    for name in names:
        wanted = known.get(name)
        if wanted is None:
            raise WrongUse(
                f"--allow {name}: unknown name",
                f"The names are {list_of(sorted(set(known.values())))}.",
            )
        found.add(wanted)
    return frozenset(found)


def judge_start(start: QueryToStart, allowed: frozenset[str]) -> tuple[str, ...]:
    """Judge a start: refuse it, or return warnings about what was allowed or not examined."""
    warnings: list[str] = []
    situation = _situation(start, allowed, warnings)
    findings = [found for check in start_checks() for found in check(situation)]
    said = {one.rule for one in findings}
    judged: list[Finding] = _gathered(lambda: list(judge_code(start)), [], "changed code", warnings)
    findings += [one for one in judged if one.rule not in said]
    for finding in findings:
        if finding.rule in allowed:
            warnings.append(f"allowed: {finding.what}")
        elif finding.severity is Severity.ADVICE:
            warnings.append(f"{finding.rule}: {finding.what}")
    refuse(findings, allowed)
    return tuple(warnings)


def _situation(start: QueryToStart, allowed: frozenset[str], warnings: list[str]) -> Situation:
    spark, saved, query = start.spark, start.saved, start.query
    begins: dict[str, SourceOffset] = _gathered(
        lambda: positions(start), {}, "where the next batch begins", warnings
    )
    outside = _gathered(
        lambda: ask_before_start(start, begins, allowed), LiveAnswers(), "the sources", warnings
    )
    for source, why in outside.silent.items():
        position = begins.get(source)
        names = about(position).start_rules if position else ()
        if names and "kafka-unreachable" not in names:
            warnings.append(f"not looked for {list_of(names)}: {why}")
    outside = replace(
        outside, sink=_gathered(lambda: _sink(start), None, "what the sink has", warnings)
    )
    named = query.sink_options.get(CHECKPOINT_OPTION)
    return Situation(
        start.pipeline,
        start.location,
        str(spark.sparkContext.master),
        saved.checkpoint,
        saved.stateful,
        tuple(
            StartingSource(known_as, source.kind, source.options, begins.get(known_as))
            for known_as, source in start.sources
        ),
        query.sink_options,
        None if named is None else qualified(spark, named),
        _chosen_conf(start),
        outside,
        None if IN_USE in allowed else _gathered(lambda: _in_use(start), None, IN_USE, warnings),
        _gathered(lambda: _handed_over(start), (), START_FILE, warnings),
        file_manager=spark.conf.get(FILE_MANAGER_CLASS, None),
        sink=query.sink,
        output_mode=query.output_mode,
    )


def _gathered(
    gather: Callable[[], _Answer], otherwise: _Answer, what: str, warnings: list[str]
) -> _Answer:
    """Gather a fact; a storage or server that does not answer must not stop a restart."""
    from py4j.protocol import Py4JError

    try:
        return gather()
    except (FloodmarkError, Py4JError) as error:
        warnings.append(f"not looked at {what}: {str(error).splitlines()[0]}")
        return otherwise


def _chosen_conf(start: QueryToStart) -> dict[str, str]:
    """Return the chosen values of pinned keys: a default that nobody chose contradicts nothing."""
    checkpoint = start.saved.checkpoint
    if checkpoint is None:
        return {}
    session = start.spark._jsparkSession.sessionState().conf()
    return {
        key: str(session.getConfString(key)) for key in checkpoint.conf if session.contains(key)
    }


def _sink(start: QueryToStart) -> SinkLog | None:
    checkpoint, query = start.saved.checkpoint, start.query
    query_id = None if checkpoint is None else checkpoint.query_id
    return ask_sink(start.spark, query.sink, query.sink_options, query_id)


def _in_use(start: QueryToStart) -> InUse | None:
    holder = live_holder(start.files) if start.saved.exists else None
    return None if holder is None else in_use(start.location, holder)


def _handed_over(start: QueryToStart) -> tuple[int, ...]:
    """Return the versions where Delta sources begin, from the checkpoint's start file."""
    _, _, name = START_FILE.rpartition("/")
    if start.saved.resumes or name not in start.files.level(NOTES).files:
        return ()
    given = parse_start(start.files.read(RelativePath(START_FILE)), START_FILE)
    return tuple(one.version for one in given.sources if isinstance(one, DeltaStart))


def refuse(findings: Iterable[Finding], allowed: frozenset[str]) -> None:
    """Raise an error if a finding is neither allowed nor only advice."""
    left = [
        one for one in findings if one.rule not in allowed and one.severity is not Severity.ADVICE
    ]
    if not left:
        return
    first, *others = left
    more = [f"{other.what} ({other.rule})" for other in others]
    why = first.why + ("\nFurther reasons: " + "; ".join(more) + "." if more else "")
    names = list(dict.fromkeys(one.rule for one in left))
    options = " ".join(f"--allow {name}" for name in names)
    auto = f"with floodmark.auto: FLOODMARK_ALLOW={','.join(names)}"
    do = f"{first.do}\nTo start all the same: {options} ({auto})"
    passing = all(find_rule(one.rule).rule.passing for one in left)
    raise (NotReachable if passing else Refused)(first.what, why, do)


def list_of(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
