"""Judges code that changed since the last start, as `floodmark check` does, before it runs.

For unchanged code this only reads the note of its last start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from floodmark.checkpoint.conf_keys import CHECKPOINT_OPTION
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.outline import evaluating
from floodmark.checkpoint.plan.tree import PlanTree
from floodmark.checkpoint.start_note import LastStart, last_start
from floodmark.engine.code.check import compare
from floodmark.engine.code.query import source_folders, sql_conf
from floodmark.engine.start.query_to_start import QueryToStart
from floodmark.errors import ExtraMissing, FloodmarkError
from floodmark.rules.finding import Finding, Severity
from floodmark.rules.registry import find_rule
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.differences import differences, untold
from floodmark.rules.restarts.reason import Reason, Verdict
from floodmark.rules.restarts.source_lists import other_list
from floodmark.rules.restarts.verdict import judge_restart
from floodmark.storage.last_start import acting_note
from floodmark.storage.load import load

_STOPPING = (Verdict.NEEDS_MIGRATION, Verdict.NEEDS_NEW_CHECKPOINT)
_UNNOTED = "last-start-unknown"


def judge_code(start: QueryToStart) -> Iterator[Finding]:
    checkpoint = start.saved.checkpoint
    if checkpoint is None or not start.saved.resumes or _is_unchanged(start, checkpoint):
        return
    try:
        checkpoint = load(start.files)
        try:
            comparison = compare(start.writer, start.files, checkpoint, start.fingerprint)
        except ExtraMissing as error:
            # Everything but the windows in the state can be compared without these packages.
            yield _advice(start.location, "the windows in the state were not compared", error)
            comparison = compare(
                start.writer, start.files, checkpoint, start.fingerprint, look=False
            )
        if start.file is not None:
            comparison = replace(comparison, application=_for_commands(start.file))
    except FloodmarkError as error:
        yield _advice(start.location, "the code was not compared with the checkpoint", error)
        return
    yield from code_findings(comparison, start.location)


def _for_commands(file: str) -> tuple[str, ...]:
    """Return the application of a printed command; the arguments of a script may be secrets."""
    is_script = len(sys.argv) > 1 and Path(sys.argv[0]).resolve() == Path(file).resolve()
    return (file, "--", "ARGUMENTS") if is_script else (file,)


def _advice(location: str, words: str, error: FloodmarkError) -> Finding:
    return find_rule(_UNNOTED).rule.finding(
        location,
        f"{words}: {error.what}",
        why=error.why,
        do=error.do,
        severity=Severity.ADVICE,
    )


def code_findings(comparison: Comparison, location: str) -> Iterator[Finding]:
    """Return the verdicts of `check` as findings; a finding with an error refuses the start."""
    for reason in judge_restart(comparison).reasons:
        stops = _stops(reason)
        if stops or reason.verdict is Verdict.UNKNOWN or reason.silent:
            yield find_rule(reason.rule).rule.finding(
                location,
                f"{reason.what} ({reason.code}, {reason.where})",
                why=reason.why,
                do=reason.do,
                severity=Severity.ERROR if stops else Severity.ADVICE,
            )


def _stops(reason: Reason) -> bool:
    """Whether a reason refuses the start: silent changes do, a missing note does not."""
    if reason.verdict in _STOPPING:
        return True
    return reason.verdict is Verdict.UNKNOWN and reason.silent and reason.rule != _UNNOTED


def _is_unchanged(start: QueryToStart, checkpoint: Checkpoint) -> bool:
    note = last_start(acting_note(start.files, checkpoint.committed_batch))
    if note is None or note.tree is None:
        return False
    query, redaction = start.query, note.redaction
    if note.spark_version != str(start.spark.version) or not _is_same(note.tree, query.tree):
        return False
    kinds = [one.kind for one in query.sources]
    if other_list(checkpoint, kinds, source_folders(start.writer)) is not None:
        return False
    now = redaction.conf(sql_conf(start.spark))
    if any(note.conf.get(key) != now.get(key) for key in evaluating({**note.conf, **now})):
        return False
    is_untold = _keeps_own_state(start) or untold(note.tree, query.tree) is not None
    if is_untold and note.fingerprint != start.fingerprint:
        return False  # the variables of such a state are in the code, not in the plan
    return (
        [(one.kind, dict(one.options), one.schema_ddl) for one in note.sources]
        == [(one.kind, redaction.options(one.options), one.schema_ddl) for one in query.sources]
        and (note.sink, note.output_mode.lower()) == (query.sink, query.output_mode.lower())
        and _sink_options(note) == _without_checkpoint(redaction.options(query.sink_told))
    )


def _is_same(old: PlanTree, new: PlanTree) -> bool:
    now = new if old.salt is None else new.hidden(old.salt)
    return not differences(old, now) and old.watermarks == now.watermarks


def _keeps_own_state(start: QueryToStart) -> bool:
    return any("WithState" in step.kind for step in start.query.tree.stateful)


def _sink_options(note: LastStart) -> dict[str, str]:
    return _without_checkpoint(dict(note.sink_options))


def _without_checkpoint(options: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key != CHECKPOINT_OPTION}
