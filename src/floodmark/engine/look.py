"""The looks before a start: what would hurt is refused with a reason, before anything is made.

Each look is a file in looks/; each thing it finds has a name, and `--allow NAME` lets
the start go on in spite of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from floodmark.engine.query import Query, Source
from floodmark.engine.saved import Saved
from floodmark.errors import FloodmarkError, NotReachable, Refused, WrongUse
from floodmark.storage.files import Files


@dataclass(frozen=True)
class Objection:
    name: str
    """Kebab-case, after the bad thing, so that 'allow <name>' reads well."""
    what: str
    why: str
    do: str
    remark: bool = False
    """Worth a word, and no reason to refuse."""
    passing: bool = False
    """Time alone may mend it: a broker that does not answer now."""


@dataclass(frozen=True)
class Situation:
    """Everything a look may ask."""

    spark: Any
    pipeline: str
    location: str
    """The checkpoint with its scheme, as Spark resolves it."""
    files: Files
    saved: Saved
    query: Query
    writer: Any = None
    fingerprint: str | None = None
    """Of the file that the code comes from."""

    @property
    def sources(self) -> Iterator[tuple[str, Source]]:
        """The query's sources, each with the id that the checkpoint knows it by."""
        checkpoint = self.saved.checkpoint
        latest = None if checkpoint is None else checkpoint.offset_log_version
        for index, source in enumerate(self.query.sources):
            yield (source.name or str(index)) if latest == 2 else str(index), source


@dataclass(frozen=True)
class Look:
    names: tuple[str, ...]
    judge: Callable[[Situation], Iterable[Objection]]


SHARED_CHECKPOINT = "shared-checkpoint"


def all_looks() -> tuple[Look, ...]:
    from floodmark.engine.looks import code, delta, inputs, kafka, pins, place, sources, use, writer

    modules = (writer, use, place, sources, pins, inputs, kafka, delta, code)
    return tuple(Look(module.NAMES, module.judge) for module in modules)


def look_names() -> tuple[str, ...]:
    found = {name for look in all_looks() for name in look.names} | {SHARED_CHECKPOINT}
    return tuple(sorted(found))


def require_known(allowed: Iterable[str]) -> None:
    names = look_names()
    for name in allowed:
        if name not in names:
            raise WrongUse(
                f"--allow {name}: no such thing to allow", f"There are {list_of(names)}."
            )


def list_of(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def look(situation: Situation, allowed: frozenset[str]) -> tuple[str, ...]:
    """Refuses, or gives warnings: what was allowed, and what could not be looked at."""
    from py4j.protocol import Py4JError

    warnings: list[str] = []
    objections: list[Objection] = []
    for one in all_looks():
        if allowed.issuperset(one.names):
            continue
        try:
            objections += one.judge(situation)
        except (FloodmarkError, Py4JError) as error:
            # A look that storage or a server did not let us take must not stop a restart.
            words = str(error).splitlines()[0]
            warnings.append(f"not looked for {list_of(one.names)}: {words}")
    for objection in objections:
        if objection.name in allowed:
            warnings.append(f"allowed: {objection.what}")
        elif objection.remark:
            warnings.append(f"{objection.name}: {objection.what}")
    refuse([one for one in objections if one.name not in allowed and not one.remark])
    return tuple(warnings)


def refuse(objections: list[Objection]) -> None:
    if not objections:
        return
    first, *others = objections
    more = [f"{other.what} ({other.name})" for other in others]
    why = first.why + ("\nAnd besides: " + "; ".join(more) + "." if more else "")
    do = f"{first.do}\nTo start all the same: {allow_options(objections)}"
    kind = NotReachable if all(one.passing for one in objections) else Refused
    raise kind(first.what, why, do)


def allow_options(objections: list[Objection]) -> str:
    return " ".join(dict.fromkeys(f"--allow {objection.name}" for objection in objections))
