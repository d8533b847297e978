"""Compares new code with a checkpoint for the rules of `check`; changes neither."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import (
    PROVIDER_CLASS,
    SHUFFLE_PARTITIONS,
    SOURCE_EVOLUTION,
    STATE_FORMAT,
)
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.outline import Outline
from floodmark.checkpoint.source_kinds import with_code_kinds
from floodmark.checkpoint.start_note import LastStart
from floodmark.diagnosis.held import gather_held
from floodmark.engine.app.built import Built
from floodmark.engine.app.choosing import place_of
from floodmark.engine.app.git_revision import at_revision
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.app.surroundings import require_revision
from floodmark.engine.code.outline import described, outline
from floodmark.engine.code.query import read_query, read_sources, source_folders
from floodmark.engine.code.rehearse import DEFAULT_CAP, capped, rehearse
from floodmark.engine.code.sink_log import newest_in_sink
from floodmark.engine.code.skeleton_checkpoint import skeleton_checkpoint
from floodmark.engine.code.source_tables import read_tables
from floodmark.engine.pipelines.building import built
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.engine.spark.jvm import few_batches_jvm, short_lived_jvm
from floodmark.engine.start.notes import add_note, note_of
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.progress import tell
from floodmark.redaction import Redaction, is_plain_setting
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.held_checkpoint import HeldCheckpoint
from floodmark.rules.restarts.reason import Judgement
from floodmark.rules.restarts.source_lists import seen_by_place
from floodmark.rules.restarts.verdict import judge_restart
from floodmark.secret_text import names_secret
from floodmark.storage.files import Files, WritableFiles
from floodmark.storage.last_start import acting_note
from floodmark.storage.load import load

_UNNAMED = "UNNAMED_STREAMING_SOURCES_WITH_ENFORCEMENT"
_LAID_OUT = (SHUFFLE_PARTITIONS, PROVIDER_CLASS, STATE_FORMAT)
# `migrate` has its own options for these settings.


@dataclass(frozen=True)
class CheckOptions:
    settings: Mapping[str, str] = field(default_factory=dict)
    rehearse: bool = False
    empty_sources: bool = False
    """True where the rehearsal replaces all sources by empty ones."""
    cap_rows: int = DEFAULT_CAP
    """The most records that each source gives to the rehearsal, if it supports a limit; 0: all."""
    conf: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    stdout_to_stderr: bool = False
    old: str | None = None
    """The code that made the checkpoint, as APP.py[:PIPELINE]."""
    old_ref: str | None = None
    """The revision of git that has the old code, under the application's own path."""
    adopt: bool = False
    """True to store the old code in the checkpoint as the note of the last start."""
    accept: frozenset[str] = frozenset()
    """Rules whose silent changes the user accepts."""
    script: ScriptOptions = field(default_factory=ScriptOptions)
    scratch: str | None = None
    """The folder for the rehearsal's fork; a cluster needs a folder that all its machines see."""


def check_application(
    files: WritableFiles, checkpoint: Checkpoint, target: str, request: CheckOptions
) -> Judgement:
    """Return the verdict on an application's pipeline for a checkpoint."""
    return _judged(target, request, checkpoint, files)


def check_outline(held: HeldCheckpoint, target: str, request: CheckOptions) -> Judgement:
    """Return the verdict from an outline alone; a rehearsal runs on a checkpoint made of it."""
    if request.adopt:
        raise WrongUse("--adopt needs the checkpoint", do="Give it instead of its outline.")
    return _judged(target, request, held.checkpoint, None, held)


def _judged(
    target: str,
    request: CheckOptions,
    checkpoint: Checkpoint,
    files: WritableFiles | None,
    outlined: HeldCheckpoint | None = None,
) -> Judgement:
    with contextlib.ExitStack() as closing:
        closing.enter_context(few_batches_jvm() if request.rehearse else short_lived_jvm())
        found = closing.enter_context(
            built(
                target,
                request.settings,
                checkpoints=(checkpoint.path,),
                conf=request.conf,
                log=request.log,
                stdout_to_stderr=request.stdout_to_stderr,
                script=request.script,
            )
        )
        old = None
        tell("comparing the code with the checkpoint")
        with old_code(target, request.old, request.old_ref) as given:
            if given is not None:
                made = described_code(
                    given, request.settings, request.conf, request.script, (checkpoint.path,)
                )
                old = made.last_start
                if request.adopt and files is not None:
                    adopt(files, checkpoint, made, request.old or f"{target}@{request.old_ref}")
        fingerprint = found.fingerprint if old is None else found.code
        if outlined is not None or files is None:
            assert outlined is not None
            comparison = compare_held(found.writer, outlined, fingerprint, old)
        else:
            comparison = compare(found.writer, files, checkpoint, fingerprint, old)
        comparison = replace(
            comparison,
            application=_as_given(target, request),
            code_checkpoint=found.checkpoint,
            code_checkpoint_is_free=_is_free(found, checkpoint.path),
        )
        if request.rehearse:
            tell("Spark tries a batch on a fork")
            with capped(request.cap_rows):
                writer = found.again()
            if outlined is not None:
                with skeleton_checkpoint(outlined) as made_of_it:
                    found_in_it = load(made_of_it)
                    rehearsal = rehearse(writer, made_of_it, found_in_it, True, request.scratch)
            else:
                assert files is not None
                empty = request.empty_sources
                rehearsal = rehearse(writer, files, checkpoint, empty, request.scratch)
            comparison = replace(comparison, rehearsal=rehearsal)
        return judge_restart(comparison, request.accept)


def _is_free(found: Built, checkpoint: str) -> bool:
    """Whether the code names another location for its checkpoint, and that location is empty."""
    named = found.checkpoint
    if named is None or place_of(named) == place_of(checkpoint):
        return False
    try:
        there = checkpoint_files(found.spark, named).level()
    except FloodmarkError:  # unreadable, so maybe not empty: the plan proposes another location
        return False
    return not (there.files or there.folders)


def _as_given(target: str, request: CheckOptions) -> tuple[str, ...]:
    """Return the application and its options for the command that `check` prints, no secrets."""
    words = [target]
    words += ["--old", request.old] if request.old is not None else []
    words += ["--old-ref", request.old_ref] if request.old_ref is not None else []
    for name, value in request.settings.items():
        words += ["--set", f"{name}={'…' if names_secret(name) else value}"]
    for name, value in request.conf.items():
        if name not in _LAID_OUT and is_plain_setting(name, value):
            words += ["--conf", f"{name}={value}"]
    script = request.script
    words += ["--query", script.query] if script.query is not None else []
    words += ["--py-files", ",".join(script.py_files)] if script.py_files else []
    # A script's arguments may be secrets.
    words += ["--", "ARGUMENTS"] if script.arguments else []
    return tuple(words)


@dataclass(frozen=True)
class OldCode:
    """The old code, described as a start would have noted it; nothing was run."""

    outline: Outline
    redaction: Redaction
    fingerprint: str | None = None
    """Of its file, and of the modules that it imports."""

    @property
    def last_start(self) -> LastStart:
        drawn = self.outline
        return LastStart(
            drawn.sources,
            drawn.sink,
            drawn.sink_options,
            drawn.output_mode,
            drawn.trigger,
            drawn.schema_json,
            drawn.spark_version,
            drawn.conf,
            self.fingerprint,
            tree=drawn.tree,
            redaction=self.redaction,
            is_drawn=True,
        )


def described_code(
    target: str,
    settings: Mapping[str, str],
    conf: Mapping[str, str],
    script: ScriptOptions | None = None,
    checkpoints: tuple[str, ...] = (),
    redaction: Redaction | None = None,
) -> OldCode:
    """Describe the code of APP.py[:NAME] as a start would note it; nothing is started."""
    redaction = redaction or Redaction.fresh()

    def drawn(conf: Mapping[str, str]) -> OldCode:
        with built(
            target, settings, checkpoints=checkpoints, conf=conf, script=script, all_settings=False
        ) as one:
            require_revision()
            query = read_query(one.writer)
            made = described(one.writer._spark, query, redaction=redaction, of_old_code=True)
            return OldCode(made, redaction, one.code)

    try:
        return drawn(conf)
    except FloodmarkError as error:
        if _UNNAMED not in str(error):
            raise
        # This code is from before `convert --name`; the settings are those of the new code.
        return drawn({**conf, SOURCE_EVOLUTION: "false"})


@contextlib.contextmanager
def old_code(app: str, old: str | None, revision: str | None) -> Iterator[str | None]:
    """Yield the old code's APP.py[:NAME]: the given file, or the application in a revision."""
    if old is not None and revision is not None:
        raise WrongUse("--old and --old-ref exclude each other", do="Give one of them.")
    if revision is None:
        yield old
        return
    with at_revision(app, revision) as found:
        yield found


def adopt(files: WritableFiles, checkpoint: Checkpoint, old: OldCode, name: str) -> None:
    """Store the old code as the note of the last start, so that later verdicts find it there."""
    noted = acting_note(files, checkpoint.committed_batch)
    if noted is not None:
        raise WrongUse(
            f"{checkpoint.path} already has a note of its last start",
            "The query wrote that note when it started, and --adopt does not replace it.",
            "Leave out --adopt.",
        )
    if checkpoint.committed_batch is None:
        raise WrongUse(
            f"{checkpoint.path} has no committed batch: the old code made nothing in it",
            do="Leave out --adopt.",
        )
    add_note(files, note_of(old.outline, name, 0, old.redaction))


def compare(
    writer: Any,
    files: Files,
    checkpoint: Checkpoint,
    fingerprint: str | None = None,
    old: LastStart | None = None,
    look: bool = True,
) -> Comparison:
    """Compare new code with a checkpoint, for the rules to judge.

    Without `look` the state is not read, and windows are compared only by the plan of the old code.
    """
    held = gather_held(files, checkpoint, look=look and (old is None or old.tree is None))
    return compare_held(writer, held, fingerprint, old)


def compare_held(
    writer: Any,
    held: HeldCheckpoint,
    fingerprint: str | None = None,
    old: LastStart | None = None,
) -> Comparison:
    """Compare new code with a checkpoint that was read, or outlined, before.

    Spark outlines the new code's state with the settings that the checkpoint pins. `old` is the
    code that made the checkpoint, if the user gave it; otherwise the last note is used.
    """
    code = [source.kind for source in read_sources(writer)]
    checkpoint, folders = with_code_kinds(held.checkpoint, code), source_folders(writer)
    # A schema does not depend on the number of partitions, and 200 partitions take long to run.
    few = {SHUFFLE_PARTITIONS: "1"}
    last = old or held.last
    redaction = last.redaction if last else None
    drawn = outline(writer, few, redaction=redaction, pinned=checkpoint.restart_pins)
    return Comparison(
        checkpoint,
        held.held,
        drawn,
        last,
        fingerprint,
        # An outline was made earlier: the sink may have newer batches by now.
        None
        if held.is_outline
        else newest_in_sink(writer._spark, drawn.sink, drawn.sink_options, checkpoint.query_id),
        places=held.places,
        seen=seen_by_place(checkpoint, held.seen, folders),
        # A plan says more about windows than a key does.
        windows={} if last and last.tree else held.windows,
        tables=read_tables(writer._spark, read_sources(writer), last),
        folders=folders,
    )
