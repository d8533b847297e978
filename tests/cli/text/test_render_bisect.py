"""What `run --bisect` says of each thing that it can find."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from floodmark.cli.text.render_bisect import show, words_of
from floodmark.engine.bisect.bisect import BisectReport, Culprit
from floodmark.engine.bisect.records import NamedRecord

FAILS = BisectReport("ck", 7, ("source 0 (kafka): …",), "ValueError: no such region", trials=9)
ONE = NamedRecord(
    "0", "source 0 (kafka): topic orders, partition 1, offset 41, no key", "orders", 1, 41
)
OTHER = replace(ONE, words="source 0 (kafka): topic orders, partition 1, offset 42, no key")


def told(report: BisectReport) -> str:
    return "\n".join(words_of(report))


def test_one_record_is_named_and_nothing_was_skipped() -> None:
    said = told(replace(FAILS, culprits=(Culprit((ONE,)),)))
    assert "ck: batch 7, 9 trials on a fork\nsource 0 (kafka): …" in said
    assert f"This record alone fails: {ONE.words}" in said
    assert "the rest of the batch does not fail in this way" in said
    assert "Nothing was skipped or changed" in said


def test_records_that_fail_only_together_are_not_called_one() -> None:
    said = told(replace(FAILS, culprits=(Culprit((ONE, OTHER)),)))
    assert f"No single record: these 2 fail together only:\n  {ONE.words}\n  {OTHER.words}" in said
    assert "alone" not in said


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (replace(FAILS, needs_records=False), "without any record: no record is to blame"),
        (FAILS, "No small set of records was found that fails without the others"),
        (replace(FAILS, culprits=(Culprit((ONE,)),), whole=False), "there are more"),
        (replace(FAILS, other_failures=("IOException: away",)), "another way were not counted"),
        (replace(FAILS, cause=None), "--bisect-sink calls a foreachBatch function as well"),
        (replace(FAILS, unreadable=True), "is named as a whole"),
    ],
)
def test_what_it_does_not_know_is_said(report: BisectReport, words: str) -> None:
    assert words in told(report)


def test_the_sink_is_not_suspected_twice() -> None:
    assert "--bisect-sink" not in told(replace(FAILS, cause=None, sink="foreachBatch"))


def test_the_exit_status_and_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        show(replace(FAILS, culprits=(Culprit((ONE,)),)), as_json=True)
    assert ended.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["batch"], found["cause"], found["trials"]) == (7, FAILS.cause, 9)
    assert found["culprits"][0]["records"][0]["offset"] == 41
    show(replace(FAILS, cause=None), as_json=True)
    assert json.loads(capsys.readouterr().out)["cause"] is None
