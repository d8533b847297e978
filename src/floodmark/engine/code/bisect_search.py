"""Finds the fewest records that make a batch fail, by halving; knows nothing of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Ranges = tuple[tuple[int, int], ...]
"""Records by number: from the first of each pair up to, not including, the second."""

MOST_TOGETHER = 8


def ranges_of(count: int, without: Iterable[int] = (), also: Iterable[int] = ()) -> Ranges:
    """The first `count` records but for those in `without`, and single ones in addition."""
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
    """Records that fail together, none of which can be left out; all but `without` do fail.

    The shortest beginning that fails ends with a record that is needed; with that one
    kept, the search goes on before it. None where more than a few are needed.
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
