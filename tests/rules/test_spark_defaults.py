"""Which Spark planned a checkpoint, and what a later one computes otherwise by default."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broken.meeting import CONF, meeting
from floodmark.checkpoint.conf_keys import STATE_ENCODING
from floodmark.checkpoint.outline import ANSI, TIME_ZONE
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict
from floodmark.rules.restarts.verdict import judge_restart, judge_sources
from floodmark.storage.files import open_files
from floodmark.storage.load import load

PINS_OF_3 = {key: value for key, value in CONF.items() if key != STATE_ENCODING}
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
RULE = "evaluation-settings-changed"


def ansi(comparison: Comparison) -> list[Reason]:
    return [one for one in judge_restart(comparison).reasons if one.rule == RULE]


def met(spark: str, now: str, before: Any = (), after: Any = ()) -> Comparison:
    return meeting(
        old={"spark_version": spark, "conf": dict(before)},
        new={"spark_version": now, "conf": dict(after)},
        pins=PINS_OF_3 if spark < "4" else CONF,
    )


@pytest.mark.parametrize(
    ("spark", "now", "before", "after", "told"),
    [
        ("3.5.6", "4.2.0", {}, {}, True),
        ("3.5.6", "4.2.0", {}, {ANSI: "true"}, True),
        ("3.5.6", "4.2.0", {}, {ANSI: "false"}, False),
        ("3.5.6", "4.2.0", {ANSI: "true"}, {}, False),
        ("3.5.6", "4.2.0", {ANSI: "false"}, {}, True),
        ("4.0.0", "4.2.0", {}, {}, False),
        ("4.0.0", "4.2.0", {}, {ANSI: "false"}, True),
        ("3.4.1", "3.5.6", {}, {}, False),
    ],
)
def test_ansi_mode_is_judged_with_the_defaults_of_both_sparks(
    spark: str, now: str, before: dict[str, str], after: dict[str, str], told: bool
) -> None:
    found = ansi(met(spark, now, before, after))
    assert bool(found) is told
    assert all(one.verdict is Verdict.UNKNOWN and one.silent for one in found)


def test_without_a_note_the_offset_log_tells_of_spark_3() -> None:
    """Also where old code is given: this Spark has drawn it, another one has run it."""
    unnoted = meeting(old={"none": True}, new={"spark_version": "4.2.0"}, pins=PINS_OF_3)
    (found,) = ansi(unnoted)
    assert "true, and was false, the default of the Spark" in found.what
    assert f"--conf {ANSI}=false" in found.do
    assert any(one.rule == "spark-upgraded" for one in judge_restart(unnoted).reasons)
    given = meeting(pins=PINS_OF_3)
    assert given.last is not None
    assert ansi(replace(given, last=replace(given.last, is_drawn=True)))
    assert not ansi(meeting(old={"none": True}, pins=CONF))


def test_a_stream_without_state_is_told_of_it_as_well() -> None:
    (found,) = ansi(replace(met("3.5.6", "4.2.0"), held=()))
    assert found.verdict is Verdict.COMPATIBLE
    assert "cast" in found.why


def test_upgrade_is_told_of_it_as_well() -> None:
    found = judge_sources(met("3.5.6", "4.2.0")).reasons
    assert {one.rule for one in found} == {RULE, "spark-upgraded"}


def test_a_note_of_a_release_that_noted_no_zone_stops_no_start() -> None:
    """Such a note has the zone only where it was set; code that is drawn has it always."""
    (found,) = ansi(met("4.2.0", "4.2.0", {}, {TIME_ZONE: "Europe/Berlin"}))
    assert found.verdict is Verdict.COMPATIBLE
    assert "The earlier zone is not known" in found.what
    (found,) = ansi(met("4.2.0", "4.2.0", {TIME_ZONE: "UTC"}, {TIME_ZONE: "Europe/Berlin"}))
    assert (found.verdict, found.silent) == (Verdict.UNKNOWN, True)


def test_every_checkpoint_of_4_has_the_key_that_none_of_3_has() -> None:
    seen = set()
    for place in sorted(GOLDEN.glob("*/*/**/offsets")):
        entry = load(open_files(str(place.parent))).latest_entry
        if entry is not None and entry.metadata is not None:
            seen.add(
                (place.relative_to(GOLDEN).parts[0] >= "4", STATE_ENCODING in entry.metadata.conf)
            )
    assert seen == {(True, True), (False, False)}
