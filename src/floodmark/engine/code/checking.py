"""Prepares new code and an old checkpoint for the rules; neither changes."""

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
from floodmark.engine.code.outline import described, outline
from floodmark.engine.code.query import read_query, read_sources
from floodmark.engine.code.rehearse import DEFAULT_CAP, capped, rehearse
from floodmark.engine.code.sink_log import newest_in_sink
from floodmark.engine.code.skeleton_checkpoint import skeleton_checkpoint
from floodmark.engine.code.source_tables import read_tables
from floodmark.engine.pipelines.building import built
from floodmark.engine.spark.hadoop import checkpoint_files
from floodmark.engine.spark.jvm import short_lived_jvm
from floodmark.engine.start.notes import add_note, note_of
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.progress import tell
from floodmark.redaction import Redaction, is_plain_setting
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.held_checkpoint import HeldCheckpoint
from floodmark.rules.restarts.reason import Judgement
from floodmark.rules.restarts.verdict import judge_restart
from floodmark.secret_text import names_secret
from floodmark.storage.files import Files, WritableFiles
from floodmark.storage.load import load
from floodmark.storage.start_notes import acting_note

_UNNAMED = "UNNAMED_STREAMING_SOURCES_WITH_ENFORCEMENT"
_LAID_OUT = (SHUFFLE_PARTITIONS, PROVIDER_CLASS, STATE_FORMAT)
# `migrate` has options of its own for these.


@dataclass(frozen=True)
class CheckOptions:
    settings: Mapping[str, str] = field(default_factory=dict)
    rehearse: bool = False
    empty_sources: bool = False
    """The rehearsal reads none of the query's own sources."""
    cap_rows: int = DEFAULT_CAP
    """The most records that a source gives to the rehearsal, where it knows a limit; 0: all."""
    conf: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    stdout_to_stderr: bool = False
    old: str | None = None
    """The code that made the checkpoint, as APP.py[:PIPELINE]."""
    old_ref: str | None = None
    """The same, as the revision of git in which the application's own path has it."""
    adopt: bool = False
    """Keep a note in the checkpoint that the old code has made it."""
    accept: frozenset[str] = frozenset()
    """Rules whose silent changes are meant."""
    script: ScriptOptions = field(default_factory=ScriptOptions)
    scratch: str | None = None
    """Where the rehearsal's fork lies; a cluster needs a folder that all its machines see."""


def check_application(
    files: WritableFiles, checkpoint: Checkpoint, target: str, request: CheckOptions
) -> Judgement:
    """The verdict on an application's pipeline under a checkpoint."""
    return _judged(target, request, checkpoint, files)


def check_outline(held: HeldCheckpoint, target: str, request: CheckOptions) -> Judgement:
    """The same from an outline alone; a rehearsal runs on a checkpoint that is made of it."""
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
        if not request.rehearse:
            closing.enter_context(short_lived_jvm())
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
        if outlined is not None or files is None:
            assert outlined is not None
            comparison = compare_held(found.writer, outlined, found.fingerprint, old)
        else:
            comparison = compare(found.writer, files, checkpoint, found.fingerprint, old)
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
    """Whether the code names a place for its checkpoint that is another one, and is empty."""
    named = found.checkpoint
    if named is None or place_of(named) == place_of(checkpoint):
        return False
    try:
        there = checkpoint_files(found.spark, named).level()
    except FloodmarkError:  # nobody can tell: another place is proposed
        return False
    return not (there.files or there.folders)


def _as_given(target: str, request: CheckOptions) -> tuple[str, ...]:
    """The application and its options, for the command that `check` tells; no secrets."""
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
    """Old code that is at hand, as if a start had noted it; nothing was run."""

    outline: Outline
    redaction: Redaction

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
    """What the code of APP.py[:NAME] would have noted; nothing is started."""
    redaction = redaction or Redaction.fresh()

    def drawn(conf: Mapping[str, str]) -> OldCode:
        with built(
            target, settings, checkpoints=checkpoints, conf=conf, script=script, all_settings=False
        ) as one:
            query = read_query(one.writer)
            made = described(one.writer._spark, query, redaction=redaction, of_old_code=True)
            return OldCode(made, redaction)

    try:
        return drawn(conf)
    except FloodmarkError as error:
        if _UNNAMED not in str(error):
            raise
        # It is from before `convert --name`; the settings are those of the new code.
        return drawn({**conf, SOURCE_EVOLUTION: "false"})


@contextlib.contextmanager
def old_code(app: str, old: str | None, revision: str | None) -> Iterator[str | None]:
    """The old code's APP.py[:NAME]: a file that is given, or the application's in a revision."""
    if old is not None and revision is not None:
        raise WrongUse("--old and --old-ref exclude each other", do="Give one of them.")
    if revision is None:
        yield old
        return
    with at_revision(app, revision) as found:
        yield found


def adopt(files: WritableFiles, checkpoint: Checkpoint, old: OldCode, name: str) -> None:
    """Notes the old code as that of the last start, so that later verdicts need it no more."""
    noted = acting_note(files, checkpoint.committed_batch)
    if noted is not None:
        raise WrongUse(
            f"{checkpoint.path} has a note of its last start already",
            "That note was made when the query started, and is not replaced.",
            "Leave out --adopt.",
        )
    if checkpoint.committed_batch is None:
        raise WrongUse(
            f"{checkpoint.path} has no committed batch: nothing was made by the old code",
            do="Leave out --adopt.",
        )
    add_note(files, note_of(old.outline, name, 0, old.redaction))


def compare(
    writer: Any,
    files: Files,
    checkpoint: Checkpoint,
    fingerprint: str | None = None,
    old: LastStart | None = None,
) -> Comparison:
    """What the rules judge of new code on a checkpoint."""
    held = gather_held(files, checkpoint, look=old is None or old.tree is None)
    return compare_held(writer, held, fingerprint, old)


def compare_held(
    writer: Any,
    held: HeldCheckpoint,
    fingerprint: str | None = None,
    old: LastStart | None = None,
) -> Comparison:
    """The same for a checkpoint that was read, or outlined, before.

    The new code's state is drawn with what the checkpoint pins. `old` is the code that made the
    checkpoint, where somebody has it; else a note tells.
    """
    code = [source.kind for source in read_sources(writer)]
    checkpoint = with_code_kinds(held.checkpoint, code)
    # How many partitions there are does not show in a schema, and two hundred take their time.
    pins = {key: value for key, value in checkpoint.conf.items() if key != SHUFFLE_PARTITIONS}
    last = old or held.last
    drawn = outline(writer, pins, redaction=last.redaction if last else None)
    return Comparison(
        checkpoint,
        held.held,
        drawn,
        last,
        fingerprint,
        # An outline is of an earlier time: by now the sink may well be further.
        None
        if held.is_outline
        else newest_in_sink(writer._spark, drawn.sink, drawn.sink_options, checkpoint.query_id),
        places=held.places,
        seen=held.seen,
        # A plan tells more of windows than a key does.
        windows={} if last and last.tree else held.windows,
        tables=read_tables(writer._spark, read_sources(writer), last),
    )
