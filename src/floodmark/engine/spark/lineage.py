"""Cuts the lineage of RDDs and DataFrames that a loop extends step by step.

Each step of an iterative job adds to the plan of the step before it. After some hundred steps
planning takes longer than the work, and the driver's stack overflows. Saving the data regularly
makes the plan short again.
"""

from __future__ import annotations

import re
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from floodmark.engine.spark.scala import sequence
from floodmark.errors import WrongUse

_KEPT = 2
_EVERY = 10
_COPY = re.compile(r"ReliableCheckpointRDD\[(\d+)\]")


_Place = tuple[int, tuple[tuple[CodeType, int], ...]]


@dataclass
class _Chain:
    """The saved data of one loop."""

    steps: int = 0
    depth: int | None = None
    saved: deque[str] = field(default_factory=deque)
    copies: frozenset[int] = frozenset()
    """The number of the newest copy's RDD, which stays in the lineage of what is made from it."""


class LineageCut:
    """Counts the steps since the data was last saved.

    Each place that calls it has a count of its own, in each thread. So parallel loops, or two calls
    in one loop, are each cut on schedule and keep their own copies. One call that gets several data
    in turn, as in a comprehension, counts them as one: make a cut for each.

    cut = floodmark.truncate_lineage(every=10)
    for step in range(1000):
        ranks = cut(next_ranks(ranks))
    """

    def __init__(
        self, every: int = _EVERY, keep: int = _KEPT, say: Callable[[str], Any] | None = None
    ) -> None:
        if every < 1 or keep < 1:
            raise WrongUse(
                f"every={every}, keep={keep}: both must be numbers from 1 on",
                do="Give truncate_lineage(every=10).",
            )
        self.every, self.keep = every, keep
        self._say = say or (lambda words: None)
        self._chains: dict[_Place, _Chain] = {}
        self._last = _Chain()

    @property
    def steps(self) -> int:
        """Return the number of steps of the last call's loop."""
        return self._last.steps

    @property
    def depth(self) -> int | None:
        """Return the lineage's depth after the last call, in RDDs, or in steps of a plan."""
        return self._last.depth

    @property
    def saved(self) -> deque[str]:
        """Return the folders that are kept for the last call's loop, oldest first."""
        return self._last.saved

    def __call__(self, data: Any) -> Any:
        """Return the same rows; at every n-th step they come from a saved copy without lineage."""
        return self._step(data, _place_of(sys._getframe(1)), self._say)

    def _step(self, data: Any, place: _Place, say: Callable[[str], Any]) -> Any:
        context = _context_of(data)
        chain = self._last = self._chains.setdefault(place, _Chain())
        chain.steps += 1
        if chain.steps % self.every:
            chain.depth = lineage_depth(data)
            return data
        if context.getCheckpointDir() is None:
            raise WrongUse(
                "the SparkContext has no checkpoint folder",
                "Saved data needs a folder that executors reach.",
                'Set it once: spark.sparkContext.setCheckpointDir("hdfs:///tmp/checkpoints")',
            )
        before = lineage_depth(data)
        self._look_back(chain, data)
        made = self._save(data, chain)
        chain.depth = lineage_depth(made)
        say(f"step {chain.steps}: lineage {before} → {chain.depth}")
        self._forget_old(context, chain)
        return made

    def _look_back(self, chain: _Chain, data: Any) -> None:
        """Do nothing, as the caller keeps this cut for one loop."""

    def _save(self, data: Any, chain: _Chain) -> Any:
        if _is_frame(data):
            # Only one pass: DataFrame.checkpoint materialises the rows by saving them.
            made = data.checkpoint(eager=True)
            saved = _saved_folder(made)
        else:
            # Kept in memory first: Spark computes an RDD for its first action, and again to save
            # it, unless its rows are still there.
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
        """Delete old copies except the last few, as a running job may still read the one before."""
        while len(chain.saved) > self.keep:
            path = context._jvm.org.apache.hadoop.fs.Path(chain.saved.popleft())
            path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)


class _SharedCut(LineageCut):
    """The cuts of callers that made none of their own.

    It outlives every loop: a loop that runs again, from the same place, begins with other data, and
    may not remove the copies of the time before, whose result may still be in use.
    """

    def _look_back(self, chain: _Chain, data: Any) -> None:
        if not chain.copies & _copies(data):
            chain.saved.clear()

    def _save(self, data: Any, chain: _Chain) -> Any:
        made = super()._save(data, chain)
        chain.copies = _copies(made)
        return made

    def step(self, data: Any, frame: FrameType, say: Callable[[str], Any] | None) -> Any:
        return self._step(data, _place_of(frame), say or self._say)


_shared: dict[tuple[int, int], _SharedCut] = {}


def _place_of(frame: FrameType | None) -> _Place:
    """Return where a call is, with its callers: two loops or threads may share a function.

    Recursion counts once.
    """
    found: dict[tuple[CodeType, int], None] = {}
    while frame is not None:
        found[frame.f_code, frame.f_lasti] = None
        frame = frame.f_back
    return threading.get_ident(), tuple(found)


def truncate_lineage(
    data: Any = None,
    *,
    every: int | None = None,
    keep: int = _KEPT,
    say: Callable[[str], Any] | None = None,
) -> Any:
    """Save iterated data on schedule: `cut = truncate_lineage(every=10)`, then `cut(frame)`.

    `truncate_lineage(frame, every=10)` in the loop does the same. With `data` alone it is cut now.
    The last `keep` copies stay, older ones are removed. Each place that calls counts for itself.
    `say` is told of each cut and of the lineage's depth.
    """
    if data is None:
        return LineageCut(_EVERY if every is None else every, keep, say)
    if every is None:
        return LineageCut(1, keep, say)(data)
    shared = _shared.setdefault((every, keep), _SharedCut(every, keep))
    return shared.step(data, sys._getframe(1), say)


def lineage_depth(data: Any) -> int:
    """Return the length of the data's lineage, in RDDs, or in steps of a frame's plan.

    This does not use a frame's RDD: adaptive execution would run the frame's shuffles to make it.
    """
    if _is_frame(data):
        text = data._jdf.queryExecution().logical().toString()
    else:
        text = data._jrdd.rdd().toDebugString()
    # Each line of either description is one step.
    return max(len(str(text).splitlines()), 1)


def _copies(data: Any) -> frozenset[int]:
    """The numbers of RDDs in the lineage that were saved, or that a frame's plan begins with."""
    if _is_frame(data):
        leaves = sequence(data._jdf.queryExecution().logical().collectLeaves())
        return frozenset(one.rdd().id() for one in leaves if one.nodeName() == "LogicalRDD")
    return frozenset(map(int, _COPY.findall(str(data._jrdd.rdd().toDebugString()))))


def _is_frame(data: Any) -> bool:
    # Do not look for `rdd`: reading that attribute makes the RDD.
    return hasattr(data, "sparkSession") and hasattr(data, "_jdf")


def _context_of(data: Any) -> Any:
    if _is_frame(data):
        return data.sparkSession.sparkContext
    if hasattr(data, "_jrdd") and hasattr(data, "checkpoint"):
        return data.context
    raise WrongUse(
        f"truncate_lineage got a {type(data).__name__}",
        "It cuts the lineage of an RDD or a DataFrame.",
        "Give it the data that the loop passes from one step to the next.",
    )


def _saved_folder(frame: Any) -> str | None:
    """Return the folder of the saved rows: the RDD at the end of the frame's plan knows it."""
    rdd = frame._jdf.queryExecution().toRdd()
    while rdd is not None:
        found = rdd.getCheckpointFile()
        if found.isDefined():
            return str(found.get())
        behind = rdd.dependencies()
        rdd = behind.apply(0).rdd() if behind.size() else None
    return None
