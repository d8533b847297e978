"""Finds a checkpoint on S3 whose files Spark copies to rename them."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import FILE_MANAGER_CLASS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import ABORTABLE, Situation

RULE = Rule(
    "FM413",
    "slow-file-manager",
    Severity.ADVICE,
    finds="A checkpoint on S3 with Spark's default checkpoint file manager.",
    matters="It writes each file under a temporary name and renames it. S3 has no rename: Hadoop "
    "copies the object and deletes the first one, and looks several times. Every batch "
    "waits for it twice, and each partition of the state once.",
    restart="The query works correctly, but is slower.",
    instead=f"`--conf {FILE_MANAGER_CLASS}={ABORTABLE}` writes each file with one request. It is "
    "in the jar spark-hadoop-cloud, which `floodmark run` fetches with the others for S3. "
    "It does not protect from two runs at once, nor does the default: on S3 both check "
    "first and write later, so only the lease of `floodmark run` protects. With it, a "
    "failed write is only a line in Spark's log: see silent-file-manager.",
)


def check(situation: Situation) -> Iterator[Finding]:
    if situation.file_manager is None and situation.location.startswith("s3a:"):
        yield RULE.finding(
            situation.location,
            "on S3 Spark writes each file of the checkpoint twice and deletes one. --conf "
            f"{FILE_MANAGER_CLASS}={ABORTABLE} writes it once; `floodmark explain {RULE.name}` "
            "says what it does not protect from",
        )
