"""Runs a mutation: old code over half of the input, `check`, new code over the rest, the truth.

The truth is what the new code emits after the change when it has run from the start. Old runs
are shared by all mutations of a query; every later run has a copy of the checkpoint.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from compatibility.mutations import sinks
from compatibility.mutations.applications import Version, write
from compatibility.mutations.inputs import AFTER, BEFORE, put, put_table
from compatibility.mutations.mutators import Mutation
from compatibility.mutations.queries import Query
from floodmark.api import check
from floodmark.engine.pipelines.building import built
from floodmark.engine.start.launch import CodeOrigin, begin, prepare
from floodmark.rules.restarts.reason import Judgement

_LIMIT_SECONDS = 180


@dataclass(frozen=True)
class Emitted:
    """What a run wrote after the change, or why it ended."""

    rows: tuple[str, ...] = ()
    failure: str = ""


class Machine:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._old: dict[str, int] = {}

    def place(self, query: Query) -> Path:
        return self._folder / query.name

    def checkpoint(self, query: Query) -> Path:
        """The checkpoint that the old code left, with a note of its start."""
        place = self.place(query)
        checkpoint = place / "checkpoint"
        if query.name not in self._old:
            put(place / "in", BEFORE)
            put_table(place / "in")
            output = place / "out"
            path = write(Version(query), place / "old.py", place / "in", output, checkpoint)
            self._start_noted(path, checkpoint)
            if output.exists():
                shutil.copytree(output, place / "out-before")
            put(place / "in", AFTER)
            self._old[query.name] = _next_batch(checkpoint)
        return checkpoint

    def _start_noted(self, path: Path, checkpoint: Path) -> None:
        sinks.GATHERED.clear()
        with built(str(path)) as found:
            origin = CodeOrigin(found.name, str(path), found.fingerprint, found.values)
            launched = begin(prepare(found.writer, str(checkpoint), origin, frozenset()))
            assert launched.query.awaitTermination(_LIMIT_SECONDS), f"{path} does not end"
        launched.lease.release()  # it would end by itself, some seconds later

    def application(self, mutation: Mutation) -> Path:
        place = self.place(mutation.query)
        name = mutation.name.replace("/", "--")
        return write(
            mutation.version,
            place / "apps" / f"{name}.py",
            place / "in",
            place / "out",
            place / "checkpoint",
        )

    def judge(self, mutation: Mutation, application: Path) -> Judgement:
        return check(str(self.checkpoint(mutation.query)), str(application))

    def carried_on(self, mutation: Mutation, application: Path, checkpoint: Path) -> Emitted:
        """The new code on a copy of this checkpoint, over the second half.

        The sink is left as the old code left it: `check` reads its log for the next mutation.
        """
        place = self.place(mutation.query)
        output = place / "out"
        copied = _fresh(place / "run")
        shutil.copytree(checkpoint, copied)
        before = sinks.written(output)
        failure = _run(application, copied)
        if mutation.query.sink == "rows":
            return Emitted(sinks.rows_since(self._old[mutation.query.name]), failure)
        added = _added(before, sinks.written(output))
        _restore(output, place / "out-before")
        return Emitted(added, failure)

    def truth(self, mutation: Mutation) -> Emitted:
        """The new code from an empty checkpoint over both halves; what it emits in the second."""
        place = self.place(mutation.query) / "truth"
        if place.exists():
            shutil.rmtree(place)
        put(place / "in", BEFORE)
        put_table(place / "in")
        output, checkpoint = place / "out", place / "checkpoint"
        path = write(mutation.version, place / "truth.py", place / "in", output, checkpoint)
        failure = ""
        if mutation.in_two_runs or mutation.query.sink != "rows":
            failure = _run(path, checkpoint)
            first = _next_batch(checkpoint) if not failure else 0
        else:
            first = len(BEFORE)
        before = sinks.written(output)
        put(place / "in", AFTER)
        failure = failure or _run(path, checkpoint)
        if mutation.query.sink != "rows":
            return Emitted(_added(before, sinks.written(output)), failure)
        return Emitted(sinks.rows_since(first), failure)


def _run(application: Path, checkpoint: Path) -> str:
    """Spark alone, without notes; the failure's first line, or nothing."""
    sinks.GATHERED.clear()
    query = None
    try:
        with built(str(application)) as found:
            query = found.writer.option("checkpointLocation", str(checkpoint)).start()
            if not query.awaitTermination(_LIMIT_SECONDS):
                return "it does not end"
    except Exception as error:  # whatever Spark says is the answer
        lines = [line for line in str(error).splitlines() if line.strip()]
        return lines[0] if lines else type(error).__name__
    finally:
        if query is not None:
            query.stop()
    return ""


def _next_batch(checkpoint: Path) -> int:
    names = (path.name for path in (checkpoint / "commits").iterdir())
    return 1 + max(int(name) for name in names if name.isdecimal())


def _fresh(folder: Path) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    return folder


def _restore(folder: Path, kept: Path) -> None:
    _fresh(folder)
    if kept.exists():
        shutil.copytree(kept, folder)


def _added(
    before: dict[str, tuple[str, ...]], after: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    return tuple(sorted(row for path in after if path not in before for row in after[path]))
