"""Judges DStreams before they start, with the rules for every start."""

from __future__ import annotations

from typing import Any

from floodmark.engine.start.before_start import IN_USE, refuse
from floodmark.engine.start.lease import in_use, live_holder
from floodmark.rules.finding import Severity
from floodmark.rules.registry import start_checks
from floodmark.rules.start_inputs.situation import Situation
from floodmark.storage.files import Files

_BY_COPYING = ("s3a:", "s3n:", "s3:", "abfs:", "abfss:", "wasb:", "wasbs:")


def judge_dstream(
    spark: Any, name: str, location: str, files: Files, allowed: frozenset[str]
) -> tuple[str, ...]:
    """Refuse the start, or return its warnings."""
    conf = spark.sparkContext.getConf()
    holder = None if IN_USE in allowed else live_holder(files)
    situation = Situation(
        name,
        location,
        str(spark.sparkContext.master),
        in_use=None if holder is None else in_use(location, holder),
        file_manager="",
        speculates=str(conf.get("spark.speculation", "false")).lower() == "true",
    )
    findings = [found for check in start_checks() for found in check(situation)]
    refuse(findings, allowed)
    warnings = [
        f"allowed: {one.what}" if one.rule in allowed else f"{one.rule}: {one.what}"
        for one in findings
        if one.rule in allowed or one.severity is Severity.ADVICE
    ]
    if location.startswith(_BY_COPYING):
        warnings.append(
            "the checkpoint is on an object store, where each rename is a copy: batches queue up "
            "where a copy takes longer than a batch"
        )
    return tuple(warnings)
