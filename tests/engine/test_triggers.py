"""`--available-now`, `--once`, `--trigger`."""

from __future__ import annotations

import pytest

from floodmark.engine.run.triggers import Trigger, interval, trigger_of
from floodmark.errors import WrongUse


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("10s", "10 seconds"),
        ("500ms", "500 milliseconds"),
        ("5min", "5 minutes"),
        ("5 m", "5 minutes"),
        ("1h", "1 hours"),
        ("2 minutes", "2 minutes"),
        ("1 second", "1 seconds"),
    ],
)
def test_lengths_of_time(text: str, spark: str) -> None:
    assert interval(text) == spark


@pytest.mark.parametrize("text", ["", "10", "s", "ten seconds", "-1s", "10 parsecs"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(WrongUse):
        interval(text)


def test_one_trigger_at_most() -> None:
    assert trigger_of(False, False, None) is None
    assert trigger_of(True, False, None) == Trigger(available_now=True)
    assert trigger_of(False, True, None) == Trigger(once=True)
    assert trigger_of(False, False, "2s") == Trigger(processing_time="2 seconds")
    with pytest.raises(WrongUse, match="--available-now and --trigger"):
        trigger_of(True, False, "2s")
