"""Provides `run` of a `spark-pipeline.yml`: checks every flow, then starts the own runner."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from floodmark.api.pipelines import flows
from floodmark.checkpoint.places.flow import FlowStatus
from floodmark.errors import NotACheckpoint, WrongUse
from floodmark.rules.finding import Finding, Severity
from floodmark.rules.registry import examine, rules_of
from floodmark.storage.files import WritableFiles, local_path, open_files


def run_pipeline(
    application: str,
    *,
    allow: Sequence[str],
    conf: Mapping[str, str],
    arguments: Sequence[str],
    log: Path | None,
    stdout_to_stderr: bool,
    say: Callable[[str], object],
) -> int:
    """Return the runner's exit status; refuse before the start if a flow would go wrong."""
    from floodmark.engine.pipelines.declarative import split_spec
    from floodmark.engine.pipelines.flow_looks import leave_notes, look_at_flows
    from floodmark.engine.pipelines.spark_pipelines import run_spark_pipelines
    from floodmark.engine.start.before_start import allowed_rules, refuse

    spec, named = split_spec(application)
    if named is not None:
        raise WrongUse(
            f"{application}: a pipeline runs as a whole",
            do=f"Leave the flow out. To update some tables alone: "
            f"floodmark run {shlex.quote(spec)} -- "
            "--refresh TABLE",
        )
    doctors = {known.rule.name for known in rules_of("checkpoint")}
    allowed = allowed_rules(one for one in allow if one not in doctors) | (doctors & set(allow))
    current = _current(spec)
    findings = [one for path, files in current.items() for one in _examined(path, files)]
    refuse(findings, allowed)  # before Spark starts, which takes its time
    looks = look_at_flows(spec, current, conf, log, stdout_to_stderr)
    findings += [] if _begins_anew(arguments) else looks.findings
    for sentence in _sentences(current, looks.orphans, looks.unread, findings, allowed):
        say(sentence)
    refuse(findings, allowed)
    status = run_spark_pipelines(Path(spec), conf, arguments, stdout_to_stderr)
    leave_notes(looks.notes, _current(spec))
    return status


def _current(spec: str) -> dict[str, WritableFiles]:
    """Return the folders that the runner continues from, including those without a batch."""
    try:
        found = flows(spec).flows
    except NotACheckpoint:
        return {}  # no flow has run yet
    current = [
        local_path(one.path) or one.path
        for one in found
        if one.flow is not None and one.flow.status is not FlowStatus.SUPERSEDED
    ]
    return {path: open_files(path) for path in current}


def _examined(path: str, files: WritableFiles) -> list[Finding]:
    """Return the doctor's findings."""
    from floodmark.diagnosis.gather import gather

    if not files.level().folders:
        return []
    return [
        replace(one, path=f"{path}/{one.path}" if one.path else path)
        for one in examine(gather(files, None))
    ]


def _begins_anew(arguments: Sequence[str]) -> bool:
    """Whether every flow begins in a new folder, so that no code has to fit an old one."""
    return "--full-refresh-all" in arguments


def _sentences(
    current: Mapping[str, WritableFiles],
    orphans: Sequence[str],
    unread: Sequence[str],
    findings: Sequence[Finding],
    allowed: frozenset[str],
) -> list[str]:
    said = [f"{len(current)} {'flow has' if len(current) == 1 else 'flows have'} a checkpoint"]
    said += [
        f"{path}: no flow of the definitions has this checkpoint. A renamed flow begins "
        "in a new folder, and leaves this one behind."
        for path in orphans
    ]
    said += [f"not compared with its checkpoint: {one}" for one in unread]
    for one in findings:
        if one.rule in allowed:
            said.append(f"allowed: {one.what}")
        elif one.severity is Severity.ADVICE:
            said.append(f"{one.rule}: {one.what}")
    return said
