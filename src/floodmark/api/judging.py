"""Provides the verbs that judge a checkpoint, or the code that will use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from floodmark.addresses import public_url
from floodmark.api.arguments import (
    Storage,
    require_spark_extra,
    require_state_extra,
    script_options,
    several_of,
    spark_settings,
    structured,
)
from floodmark.errors import WrongUse
from floodmark.screen import Shown
from floodmark.storage.files import open_files

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.checkpoint.evidence import Evidence
    from floodmark.checkpoint.live_answers import SinkLog, SourcePlaces
    from floodmark.rules.finding import Finding, Rule
    from floodmark.rules.restarts.held_checkpoint import HeldCheckpoint
    from floodmark.rules.restarts.reason import Judgement


def doctor(
    path: str,
    read_data: bool | float | None = None,
    storage: Storage | None = None,
    *,
    read_data_subset: float | None = None,
    sources: bool = False,
    bootstrap_servers: str | None = None,
    table: str | None = None,
    sink: str | None = None,
    source_kinds: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Find what is wrong with a checkpoint.

    `read_data` reads every state file completely, `read_data_subset` a part of them, such as 0.1.
    `sources` also asks Kafka, the Delta table or the input folder, and `sink` the sink: at the
    given locations, or at those in the notes of the last start. `source_kinds` names sources whose
    offsets look like another kind's: `{"0": "eventhubs"}`.
    """
    share = float(read_data) if read_data else read_data_subset
    places = (sources, bootstrap_servers, table, sink)
    return Shown(diagnose(path, share, storage, *places, source_kinds).findings)


@dataclass(frozen=True)
class Diagnosis:
    findings: tuple[Finding, ...]
    left_open: str
    """Sentences about what was not examined."""
    sink: SinkLog | None = None
    """The sink's content, if it was asked."""


def diagnose(
    path: str,
    read_data: float | None,
    storage: Storage | None,
    sources: bool = False,
    bootstrap_servers: str | None = None,
    table: str | None = None,
    sink: str | None = None,
    source_kinds: Mapping[str, str] | None = None,
) -> Diagnosis:
    """Return the doctor's findings, and what it did not examine."""
    from floodmark.checkpoint.live_answers import SourcePlaces
    from floodmark.rules.registry import examine

    places = SourcePlaces(sources, bootstrap_servers, table, sink)
    evidence = _evidence(path, read_data, storage, places, source_kinds)
    asked = evidence.outside.sink if evidence.outside else None
    found = tuple(_pasteable(one, str(path), table) for one in examine(evidence))
    return Diagnosis(found, evidence.left_open, asked)


def _pasteable(finding: Finding, path: str, table: str | None) -> Finding:
    """Put the checkpoint's own location into a finding's commands, so that they can be pasted."""
    from floodmark.rules.pasteable import with_places

    places = {"CP": path, **({"TABLE": table} if table else {})}
    shown = {name: public_url(place) for name, place in places.items()}
    return replace(finding, do=with_places(finding.do, shown))


def _evidence(
    path: str,
    read_data: float | None,
    storage: Storage | None,
    places: SourcePlaces,
    source_kinds: Mapping[str, str] | None = None,
) -> Evidence:
    from floodmark.changes.own_files import unreadable
    from floodmark.diagnosis.gather import gather

    if read_data is not None:
        require_state_extra()
    files = open_files(str(path), storage)
    found = gather(files, read_data, source_kinds)
    found = replace(found, own_unreadable=unreadable(files, found.checkpoint.files))
    if places.asks:
        from floodmark.changes.sources.asking import ask
        from floodmark.storage.last_start import latest_note
        from floodmark.storage.untrusted_places import opener

        note = latest_note(files)
        named = [str(path), places.table, places.sink]
        opened = opener(named, storage, any_host=places.asks_sources)
        outside = ask(files, found, note, places, opened)
        found = replace(found, outside=outside)
    return found


def check(
    path: str,
    application: str,
    *,
    settings: Mapping[str, str] | None = None,
    old: str | None = None,
    old_ref: str | None = None,
    adopt: bool = False,
    accept: str | Iterable[str] = (),
    rehearse: bool = False,
    cap_rows: int | None = None,
    empty_sources: bool = False,
    scratch: str | None = None,
    spark_log: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    master: str | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    storage: Storage | None = None,
    stdout_to_stderr: bool = False,
) -> Judgement:
    """Check whether the code of `APP.py[:NAME]` can continue with a checkpoint, and if not, why.

    The checkpoint's outline, a file that `floodmark.outline` made, can replace the checkpoint. The
    check uses the Spark session of this process or starts one, and changes neither the checkpoint
    nor the application's data. `arguments` are a script's own; `spark_log` is the file for Spark's
    log, `-` for standard error; by default the log is kept if something fails.
    """
    if adopt and old is None and old_ref is None:
        raise WrongUse("--adopt needs the old code", do="Give it: --old OLD.py, or --old-ref REV.")
    require_spark_extra(and_state=False)
    from floodmark.checkpoint.views.position import refuse_broken_newest
    from floodmark.engine.code.check import CheckOptions, check_application, check_outline
    from floodmark.engine.code.rehearse import DEFAULT_CAP
    from floodmark.engine.spark.session import log_to
    from floodmark.storage.load import load

    outlined = _outline_at(str(path))
    with log_to(spark_log, "check") as log:
        request = CheckOptions(
            settings or {},
            rehearse or empty_sources,
            empty_sources,
            DEFAULT_CAP if cap_rows is None else cap_rows,
            spark_settings(conf, master),
            log,
            stdout_to_stderr,
            old,
            old_ref,
            adopt,
            accepted_rules(several_of(accept)),
            script_options(arguments, query, py_files, script_limit),
            scratch,
        )
        if outlined is not None:
            return check_outline(outlined, str(application), request)
        files = open_files(str(path), storage)
        checkpoint = structured(load(files))
        refuse_broken_newest(checkpoint)  # before the application runs
        return check_application(files, checkpoint, str(application), request)


def _outline_at(path: str) -> HeldCheckpoint | None:
    """Return the outline in a file of this machine; None where the path is not a file."""
    from pathlib import Path

    place = Path(path.removeprefix("file://"))
    if not place.is_file():
        return None
    from floodmark.changes.plan.saved import bytes_of
    from floodmark.rules.restarts.outline_file import parse_outline

    return parse_outline(bytes_of(str(place)), path)


def outline(
    path: str, *, out: str | None = None, replace: bool = False, storage: Storage | None = None
) -> str:
    """Return a checkpoint's description without its data, as JSON for `check`; `out` is a file.

    An existing file is replaced only if it is an older outline of the same checkpoint, or with
    `replace` the outline of another one.
    """
    from floodmark.changes.named_places import refuse_inside
    from floodmark.changes.saved_outline import save_outline
    from floodmark.diagnosis.held import gather_held
    from floodmark.rules.restarts.outline_file import outline_text
    from floodmark.storage.load import load

    if out is not None:
        refuse_inside(str(out), str(path))
    files = open_files(str(path), storage)
    text = outline_text(gather_held(files, structured(load(files))))
    if out is not None:
        save_outline(text, str(out), replace)
    return text


def accepted_rules(names: Iterable[str]) -> frozenset[str]:
    """Return checked names of compatibility rules: a misspelt name would accept nothing."""
    from floodmark.errors import WrongUse
    from floodmark.rules.registry import find_rule, rules_of

    known = {one.rule.name for one in rules_of("compatibility")}
    found = frozenset(find_rule(name).rule.name for name in names)
    for name in found - known:
        raise WrongUse(
            f"--accept {name}: it is not a compatibility rule",
            "Only reasons of `check` about changed code can be accepted.",
            "Use the rule's name from the reason.",
        )
    return found


def lint(paths: str | Iterable[str]) -> tuple[Finding, ...]:
    """Find risks in streaming code: Python files, notebooks and folders of them."""
    from floodmark.diagnosis.code_files import read_sources
    from floodmark.rules.code.reading import not_python, read_code
    from floodmark.rules.lint import judge

    return Shown(
        judge(
            read_code(path, text) if isinstance(text, str) else not_python(path, text.what)
            for path, text in read_sources(str(path) for path in several_of(paths))
        )
    )


def explain(rule: str | None = None) -> tuple[Rule, ...]:
    """Return the explanation of a rule, by code or name, or of all rules."""
    from floodmark.rules.registry import all_rules, find_rule

    found = all_rules() if rule is None else (find_rule(rule),)
    return Shown(known.rule for known in found)
