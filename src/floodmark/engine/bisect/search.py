"""Finds the fewest records that make a batch fail, by halving; independent of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Ranges = tuple[tuple[int, int], ...]
"""Ranges of record numbers; the second number of each pair is not included."""

MOST_TOGETHER = 8


def ranges_of(count: int, without: Iterable[int] = (), also: Iterable[int] = ()) -> Ranges:
    """Return the first `count` numbers except `without`, and the single numbers `also`."""
    found: list[tuple[int, int]] = []
    begin = 0
    for one in sorted(set(without)):
        if begin < min(one, count):
            found.append((begin, min(one, count)))
        begin = one + 1
    if begin < count:
        found.append((begin, count))
    found += [(one, one + 1) for one in sorted(set(also)) if one >= count]
    return tuple(found)


def smallest(
    count: int, without: frozenset[int], fails: Callable[[Ranges], bool]
) -> frozenset[int] | None:
    """Return the fewest records that fail together; all records but `without` must fail.

    The shortest prefix that fails ends with a record that is needed. The search keeps that
    record and goes on before it. Returns None where more than MOST_TOGETHER are needed.
    """
    kept: list[int] = []
    end = count
    while not kept or not fails(ranges_of(0, (), kept)):
        if len(kept) == MOST_TOGETHER or end == 0:
            return None
        low, high = 0, end
        while high - low > 1:
            middle = (low + high) // 2
            if fails(ranges_of(middle, without, kept)):
                high = middle
            else:
                low = middle
        kept.append(high - 1)
        end = high - 1
    return frozenset(kept)
