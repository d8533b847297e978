"""Loads `--with MIGRATION.py`: the user's functions for the rows of state.

A function gets the old rows as a DataFrame of `key` and `value`, as `floodmark state` shows
them, and returns the rows of the new code; a list's elements are in one array. `merge` says how
rows whose keys become equal are merged: a rule for each column, or a function.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.changes.matching.merged_keys import MERGES
from floodmark.changes.matching.shapes import OperatorShape
from floodmark.changes.planners.kept_operators import Drawn
from floodmark.checkpoint.operator_kinds import JOIN
from floodmark.engine.state.made_rows import Merge
from floodmark.errors import NotCarried, WrongUse
from floodmark.state.rows.given_rows import GIVEN
from floodmark.state.shapes.operators import TIMERS, Reading
from floodmark.storage.user_code import code_bytes

_PREFIX, _MERGE = "operator_", "merge"
_TTL = "$ttl_"
_TIMER_FAMILIES = ("$procTimers_", "$eventTimers_")


@dataclass(frozen=True)
class MigrationCode:
    path: str
    digest: str
    functions: Mapping[tuple[int, str], Callable[[Any], Any]]
    """The function that makes the rows of (operator of the new code, store)."""
    table: Mapping[str, str] | None = None
    """`merge = {…}`, which applies to every operator."""
    merges: Mapping[int, Callable[[Any, Any], Any]] = field(default_factory=dict)
    """`def merge(key, values)`, or `merge_0` for one operator."""

    def merge_of(self, operator: int) -> Merge | None:
        return self.merges.get(operator, self.table)


@dataclass(frozen=True)
class Advice:
    """Says what to do instead of giving rows that depend on others."""

    join: str
    timed: str
    expiring: str


TO_CARRY = Advice(
    "Leave the function out: columns are matched by name, and --rename and --default handle "
    "the others.",
    "Leave the function out: migrate carries it as it is.",
    "Leave the function out: migrate carries it and its index as they are, columns by name.",
)
_INITIAL = (
    "Leave it out: it begins empty. Or start the stream without bootstrap, and give "
    "transformWithState an initialState: Spark then sets timers and expiry times itself."
)
TO_BEGIN = Advice(
    "Leave it out: the join begins empty. Let --start begin its sources as far back as a row "
    "waits for its partner, and it fills itself.",
    _INITIAL,
    _INITIAL,
)


def read_migration(path: str) -> bytes:
    try:
        return code_bytes(Path(path))
    except OSError as error:
        raise WrongUse(
            f"{path}: cannot read it ({error.strerror})",
            do="`floodmark migrate … --skeleton > MIGRATION.py` writes one to begin with.",
        ) from None


def load_migration(path: str, drawn: Drawn) -> MigrationCode:
    source = read_migration(path)
    module = _import(path)
    operators = {one.operator.number: one.operator for one in drawn.operators}
    functions = {}
    for name, value in vars(module).items():
        if name.startswith(_PREFIX) and callable(value):
            place = _place(path, name, operators)
            require_given(f"{path}: {name}", drawn, *place, TO_CARRY)
            functions[place] = value
    table, merges = _merges(path, vars(module), operators)
    if not functions and table is None and not merges:
        raise WrongUse(
            f"{path} has no function for the state",
            "Name a function after the operator whose rows it makes: operator_0, or "
            "operator_0_NAME for a variable; merge(key, values) makes one row from several.",
            "`floodmark migrate … --skeleton` writes one to begin with.",
        )
    return MigrationCode(path, hashlib.sha256(source).hexdigest(), functions, table, merges)


def require_given(where: str, drawn: Drawn, operator: int, store: str, advice: Advice) -> None:
    """Refuse a function for rows that depend on others; independent rows can be given."""
    kept = next(one for one in drawn.operators if one.operator.number == operator)
    readings = {(one.family or one.folder): one for one in kept.readings}
    if kept.operator.kind == JOIN:
        raise NotCarried(
            f"{where}: a function cannot give the rows of a join",
            "Spark numbers the rows of each key, counts them in another store, and marks those "
            "that have found a partner: a table does not contain all of that.",
            advice.join,
        )
    reading = readings[store]
    if reading.shape not in GIVEN or store.startswith("$"):
        raise NotCarried(
            f"{where}: {store} is a {_words(reading)}, so a function cannot give its rows",
            "Spark keeps it twice, by key and by time, and the two must agree.",
            advice.timed,
        )
    if any(name.startswith(_TTL) and name.removeprefix(_TTL) == store for name in readings):
        raise NotCarried(
            f"{where}: {store} has a TTL, so a function cannot supply its rows",
            "Spark finds expired rows with an index beside them, which would not contain "
            "the new rows.",
            advice.expiring,
        )


def family_of(store: str, names: Iterable[str]) -> str:
    """Return Spark's name of a store of `floodmark state`; only for timers does it differ."""
    timers = (name for name in names if store == TIMERS and name.startswith(_TIMER_FAMILIES))
    return next(timers, store)


def variables(names: Iterable[str]) -> list[str]:
    """Return the stores that the code itself names, without Spark's own."""
    return [name for name in names if not name.startswith("$")]


def _words(reading: Reading) -> str:
    return reading.shape.value if reading.shape not in GIVEN else "store of Spark's own"


def _merges(
    path: str, names: Mapping[str, Any], operators: Mapping[int, OperatorShape]
) -> tuple[Mapping[str, str] | None, dict[int, Callable[[Any, Any], Any]]]:
    merge = names.get(_MERGE)
    functions: dict[int, Callable[[Any, Any], Any]] = {}
    if callable(merge):
        functions = dict.fromkeys(operators, merge)
    for name, value in names.items():
        number = name.removeprefix(f"{_MERGE}_")
        if name.startswith(f"{_MERGE}_") and number.isdecimal() and callable(value):
            functions[_operator(path, name, number, operators).number] = value
    if merge is None or callable(merge):
        return None, functions
    if not isinstance(merge, Mapping) or not set(merge.values()) <= set(MERGES):
        raise WrongUse(
            f"{path}: merge is a dict of column → {', '.join(MERGES)}, or a function",
            do="For any other rule, write a function: def merge(key, values) returns one value.",
        )
    return {str(name): str(how) for name, how in merge.items()}, functions


def _import(path: str) -> Any:
    from pyspark.cloudpickle import register_pickle_by_value

    name = "floodmark_migration_" + hashlib.sha256(path.encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WrongUse(f"{path}: not a Python file", do="Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        raise WrongUse(
            f"{path} fails on import: {type(error).__name__}: {error}",
            do="Correct the file: this process imports it before anything is written.",
        ) from error
    # Executors cannot import the file, so its definitions are pickled by value.
    register_pickle_by_value(module)
    return module


def _operator(
    path: str, name: str, number: str, operators: Mapping[int, OperatorShape]
) -> OperatorShape:
    operator = operators.get(int(number)) if number.isdecimal() else None
    if operator is None:
        known = ", ".join(f"{_PREFIX}{n} ({one.name or one.kind})" for n, one in operators.items())
        raise WrongUse(
            f"{path}: {name}: the new code has no such operator",
            f"It has {known}.",
            "Name the function after an operator of the new code; `--skeleton` shows them all.",
        )
    return operator


def _place(path: str, name: str, operators: Mapping[int, OperatorShape]) -> tuple[int, str]:
    number, _, store = name.removeprefix(_PREFIX).partition("_")
    operator = _operator(path, name, number, operators)
    names = [one.name for one in operator.stores]
    store = family_of(store, names)
    if operator.kind == JOIN or (not store and len(names) == 1):
        return operator.number, names[0]
    if store not in names:
        known = ", ".join(f"{_PREFIX}{operator.number}_{one}" for one in variables(names))
        raise WrongUse(
            f"{path}: {name} names no store of the operator",
            f"There are {known}.",
            "Name the function after one of them.",
        )
    return operator.number, store
