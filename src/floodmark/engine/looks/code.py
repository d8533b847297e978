"""Code that changed since the last start: judged as `floodmark check` does, before it runs.

Unchanged code costs a look at the note of its last start and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.outline import EVALUATING
from floodmark.checkpoint.start_note import LastStart, last_start
from floodmark.engine.checking import compare
from floodmark.engine.look import Objection, Situation
from floodmark.engine.query import sql_conf
from floodmark.errors import FloodmarkError
from floodmark.rules.judging import judge_restart
from floodmark.rules.registry import rules_of
from floodmark.rules.restarts.differences import differences
from floodmark.rules.restarts.reason import Reason, Verdict
from floodmark.storage.load import load
from floodmark.storage.starts import acting_note

NAMES = tuple(known.rule.name for known in rules_of("compatibility"))
_STOPPING = (Verdict.NEEDS_MIGRATION, Verdict.NEEDS_NEW_CHECKPOINT)
_UNNOTED = "last-start-unknown"
_CHECKPOINT_OPTION = "checkpointlocation"


def judge(situation: Situation) -> Iterator[Objection]:
    checkpoint = situation.saved.checkpoint
    if checkpoint is None or not situation.saved.resumes or _is_unchanged(situation, checkpoint):
        return
    try:
        comparison = compare(
            situation.writer, situation.files, load(situation.files), situation.fingerprint
        )
    except FloodmarkError as error:
        yield Objection(
            "last-start-unknown",
            f"the code was not compared with the checkpoint: {error.what}",
            error.why,
            error.do,
            remark=True,
        )
        return
    for reason in judge_restart(comparison).reasons:
        stops = _stops(reason)
        if stops or reason.verdict is Verdict.UNKNOWN or reason.silent:
            yield Objection(
                reason.rule,
                f"{reason.what} ({reason.code}, {reason.where})",
                reason.why,
                reason.do,
                remark=not stops,
            )


def _stops(reason: Reason) -> bool:
    """What goes wrong without a word is refused as well; not having been noted is not wrong."""
    if reason.verdict in _STOPPING:
        return True
    return reason.verdict is Verdict.UNKNOWN and reason.silent and reason.rule != _UNNOTED


def _is_unchanged(situation: Situation, checkpoint: Checkpoint) -> bool:
    note = last_start(acting_note(situation.files, checkpoint.committed_batch))
    if note is None or note.tree is None:
        return False
    query, redaction = situation.query, note.redaction
    if note.spark_version != str(situation.spark.version) or differences(note.tree, query.tree):
        return False
    now = redaction.conf(sql_conf(situation.spark))
    if any(note.conf.get(key) != now.get(key) for key in EVALUATING):
        return False
    if _keeps_own_state(situation) and note.fingerprint != situation.fingerprint:
        return False  # its variables are in the code, and not in the plan
    return (
        [(one.kind, dict(one.options), one.schema_ddl) for one in note.sources]
        == [(one.kind, redaction.options(one.options), one.schema_ddl) for one in query.sources]
        and (note.sink, note.output_mode.lower()) == (query.sink, query.output_mode.lower())
        and _sink_options(note) == _without_checkpoint(redaction.options(query.sink_options))
    )


def _keeps_own_state(situation: Situation) -> bool:
    return any("WithState" in step.kind for step in situation.query.tree.stateful)


def _sink_options(note: LastStart) -> dict[str, str]:
    return _without_checkpoint(dict(note.sink_options))


def _without_checkpoint(options: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key != _CHECKPOINT_OPTION}
