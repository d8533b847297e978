"""Cuts the lineage of RDDs and DataFrames that a loop builds on and on.

Each step of an iterative job adds to the plan of the one before it; after some hundred steps
planning takes longer than the work, and the driver's stack overflows. Saving the data now and
then makes the plan short again.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from floodmark.errors import WrongUse

_KEPT = 2


_Place = tuple[int, tuple[tuple[CodeType, int], ...]]


@dataclass
class _Chain:
    """One loop's data: what was saved of it."""

    steps: int = 0
    depth: int | None = None
    saved: deque[str] = field(default_factory=deque)


class LineageCut:
    """Remembers how many steps were made since the data was last saved.

    Each place that calls it counts for itself, in each thread, so that loops beside each other, or
    two calls in one loop, are each cut on schedule and keep their own copies. One call that is
    given several data in turn, as in a comprehension, counts them as one: make a cut for each.

    cut = floodmark.truncate_lineage(every=10)
    for step in range(1000):
        ranks = cut(next_ranks(ranks))
    """

    def __init__(
        self, every: int = 10, keep: int = _KEPT, say: Callable[[str], Any] | None = None
    ) -> None:
        if every < 1 or keep < 1:
            raise WrongUse(
                f"every={every}, keep={keep}: both are numbers from 1 on",
                do="Give truncate_lineage(every=10).",
            )
        self.every, self.keep = every, keep
        self._say = say or (lambda words: None)
        self._chains: dict[_Place, _Chain] = {}
        self._last = _Chain()

    @property
    def steps(self) -> int:
        """How many steps the loop of the last call has made."""
        return self._last.steps

    @property
    def depth(self) -> int | None:
        """The lineage's depth after the last call: RDDs, or steps of a plan, behind one another."""
        return self._last.depth

    @property
    def saved(self) -> deque[str]:
        """The folders that are kept of the loop of the last call, oldest first."""
        return self._last.saved

    def __call__(self, data: Any) -> Any:
        """The same rows; every so often, with nothing behind them but a saved copy."""
        context = _context_of(data)
        chain = self._last = self._chains.setdefault(_place_of(sys._getframe(1)), _Chain())
        chain.steps += 1
        if chain.steps % self.every:
            chain.depth = lineage_depth(data)
            return data
        if context.getCheckpointDir() is None:
            raise WrongUse(
                "the SparkContext has no checkpoint folder",
                "Saved data needs a place that executors reach.",
                'Set it once: spark.sparkContext.setCheckpointDir("hdfs:///tmp/checkpoints")',
            )
        before = lineage_depth(data)
        made = self._save(data, chain)
        chain.depth = lineage_depth(made)
        self._say(f"step {chain.steps}: lineage {before} → {chain.depth}")
        self._forget_old(context, chain)
        return made

    def _save(self, data: Any, chain: _Chain) -> Any:
        if _is_frame(data):
            # Once: DataFrame.checkpoint materialises the rows by saving them.
            made = data.checkpoint(eager=True)
            saved = _saved_folder(made)
        else:
            # Kept in memory first: an RDD is computed for its first action, and once more to be
            # saved, unless its rows are still there.
            was = data.getStorageLevel()
            cached = was.useMemory or was.useDisk
            if not cached:
                data.persist()
            data.checkpoint()
            data.count()
            made, saved = data, data.getCheckpointFile()
            if not cached:
                data.unpersist()
        if saved:
            chain.saved.append(str(saved))
        return made

    def _forget_old(self, context: Any, chain: _Chain) -> None:
        """The last few stay: what runs may still read the one before."""
        while len(chain.saved) > self.keep:
            path = context._jvm.org.apache.hadoop.fs.Path(chain.saved.popleft())
            path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)


def _place_of(frame: FrameType | None) -> _Place:
    """Where a call stands, with its callers: a function may serve two loops, of two threads too.

    Recursion is once.
    """
    found: dict[tuple[CodeType, int], None] = {}
    while frame is not None:
        found[frame.f_code, frame.f_lasti] = None
        frame = frame.f_back
    return threading.get_ident(), tuple(found)


def truncate_lineage(
    data: Any = None,
    *,
    every: int = 10,
    keep: int = _KEPT,
    say: Callable[[str], Any] | None = None,
) -> Any:
    """Saves iterated data on schedule: `cut = truncate_lineage(every=10)`, then `cut(frame)`.

    With `data` it is cut now. The last `keep` copies stay, older ones are removed. Each place that
    calls `cut` counts for itself. `say` is told of each cut and of the lineage's depth.
    """
    if data is not None:
        return LineageCut(1, keep, say)(data)
    return LineageCut(every, keep, say)


def lineage_depth(data: Any) -> int:
    """The way from the data back to where it came from, in RDDs, or in steps of a frame's plan.

    A frame's RDD is not asked for: adaptive execution would run its shuffles to make it.
    """
    if _is_frame(data):
        text = data._jdf.queryExecution().logical().toString()
    else:
        text = data._jrdd.rdd().toDebugString()
    # Each line of either description is one of them.
    return max(len(str(text).splitlines()), 1)


def _is_frame(data: Any) -> bool:
    # Not by its `rdd`: to ask whether it has one is to make it.
    return hasattr(data, "sparkSession") and hasattr(data, "_jdf")


def _context_of(data: Any) -> Any:
    if _is_frame(data):
        return data.sparkSession.sparkContext
    if hasattr(data, "_jrdd") and hasattr(data, "checkpoint"):
        return data.context
    raise WrongUse(
        f"truncate_lineage is given {type(data).__name__}",
        "It cuts the lineage of an RDD or a DataFrame.",
        "Give it what the loop passes from one step to the next.",
    )


def _saved_folder(frame: Any) -> str | None:
    """Where Spark has put the rows: the RDD at the end of the frame's plan knows."""
    rdd = frame._jdf.queryExecution().toRdd()
    while rdd is not None:
        found = rdd.getCheckpointFile()
        if found.isDefined():
            return str(found.get())
        behind = rdd.dependencies()
        rdd = behind.apply(0).rdd() if behind.size() else None
    return None
