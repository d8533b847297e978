"""A stream is on time by its own usual interval, not by a fixed threshold."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from floodmark.fleet.pulse import StreamHealth, batch_rate, pulse, span, usual_interval

EVERY_SECOND = tuple(range(0, 60_000, 1000))
EVERY_HOUR = tuple(range(0, 60 * 3_600_000, 3_600_000))


def test_the_same_silence_is_late_for_one_stream_and_usual_for_another() -> None:
    half_an_hour = 30 * 60_000
    quick = pulse(EVERY_SECOND, EVERY_SECOND[-1] + half_an_hour)
    slow = pulse(EVERY_HOUR, EVERY_HOUR[-1] + half_an_hour)
    assert quick.health is StreamHealth.QUIET
    assert slow.health is StreamHealth.ON_TIME
    assert (quick.usual_ms, slow.usual_ms) == (1000, 3_600_000)


def test_what_is_usual_is_the_95th_percentile_and_not_the_worst() -> None:
    steps = [1000] * 97 + [2000] * 2 + [900_000]
    times = list(accumulate(steps, initial=0))
    assert usual_interval(times) == 1000
    assert usual_interval(list(accumulate([1000] * 90 + [5000] * 10, initial=0))) == 5000


def test_two_intervals_are_late_and_ten_need_a_reason() -> None:
    last = EVERY_SECOND[-1]
    assert pulse(EVERY_SECOND, last + 8_000).health is StreamHealth.LATE
    far = last + 120_000
    assert pulse(EVERY_SECOND, far).health is StreamHealth.QUIET
    assert pulse(EVERY_SECOND, far, waiting=0).health is StreamHealth.IDLE
    assert pulse(EVERY_SECOND, far, waiting=12).health is StreamHealth.STALLED
    stalled = pulse(EVERY_SECOND, far, planned_ms=last + 1000)
    assert stalled.health is StreamHealth.STALLED
    assert "A batch is planned for 119 s." in stalled.words


def test_a_stream_that_saves_itself_always_does_not_run_when_it_is_silent() -> None:
    """DStreams makes a batch at every interval, also of nothing."""
    last = EVERY_SECOND[-1]
    assert pulse(EVERY_SECOND, last + 500, steady=True).health is StreamHealth.ON_TIME
    silent = pulse(EVERY_SECOND, last + 120_000, steady=True)
    assert silent.health is StreamHealth.STALLED
    assert "Last save" in silent.words
    assert "it does not run" in silent.words


def test_too_few_batches_tell_nothing_of_what_is_usual() -> None:
    assert pulse((), 5_000).health is StreamHealth.NEW
    assert pulse((1000, 2000), 900_000).health is StreamHealth.NEW
    assert pulse((1000,), 900_000).usual_ms is None


def test_the_rate_is_that_of_the_recent_batches() -> None:
    assert batch_rate(EVERY_SECOND) == 60.0
    assert batch_rate((5,)) is None
    assert batch_rate((5, 5)) is None


@given(st.lists(st.integers(0, 10**12)), st.integers(0, 10**13))
def test_no_times_at_all_break_it(times: list[int], now: int) -> None:
    found = pulse(times, now)
    assert found.words
    assert found.age_ms is None or found.age_ms >= 0


def test_lengths_of_time_are_for_people() -> None:
    assert [span(ms) for ms in (0, 340, 12_000, 240_000, 3 * 3_600_000, 5 * 86_400_000)] == [
        "0 ms",
        "340 ms",
        "12 s",
        "4 min",
        "3 h",
        "5 days",
    ]
