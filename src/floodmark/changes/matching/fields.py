"""Matches new columns to old ones: by name, by what the user says, or not at all. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from floodmark.errors import NotCarried
from floodmark.state.rows.types import Field, Struct, ddl, distinct, stored
from floodmark.state.rows.widening import widens
from floodmark.state.shapes.reshape import KEY, VALUE, Column


@dataclass(frozen=True)
class ColumnOptions:
    """The user's renames and defaults of columns; the names are those of `floodmark state`."""

    renames: Mapping[str, str] = field(default_factory=dict)
    """The old name for a new name."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The value that every row gets, by new name."""

    def old_name(self, name: str, within: tuple[str, ...]) -> str | None:
        dotted = ".".join((*within[1:], name))
        return self.renames.get(dotted, self.renames.get(name))

    def default(self, name: str, within: tuple[str, ...]) -> tuple[bool, Any]:
        for known in (".".join((*within[1:], name)), name):
            if known in self.defaults:
                return True, self.defaults[known]
        return False, None


@dataclass
class ColumnNotes:
    """Collects what was decided, as sentences."""

    where: str
    notes: list[str] = field(default_factory=list)

    def note(self, words: str) -> None:
        self.notes.append(f"{self.where}: {words}")


def match_struct(
    old: Struct,
    new: Struct,
    within: tuple[str, ...],
    told: ColumnOptions,
    ledger: ColumnNotes,
    beside: tuple[tuple[str, ...], Struct] | None = None,
) -> tuple[Column, ...]:
    """Return, for each new column, a column of the old struct or a filling.

    `beside` is another place to find a column: a value of format 1 repeats the key's columns.
    """
    old, new = distinct(old), distinct(new)
    renamed = _renamed(old, new, within, told, ledger)
    columns = []
    for wanted in new.fields:
        source = renamed.get(wanted.name)
        if source is not None:
            columns.append(take(old.field(source), wanted, (*within, source), told, ledger))
        elif beside is not None and wanted.name in beside[1].names:
            place, struct = beside
            found = struct.field(wanted.name)
            columns.append(take(found, wanted, (*place, wanted.name), told, ledger))
        else:
            columns.append(fill(wanted, within, told, ledger))
    gone = [name for name in old.names if name not in renamed.values()]
    if gone and beside is None:
        ledger.note(f"{', '.join('.'.join((*within[1:], name)) for name in gone)} is left out")
    return tuple(columns)


def _renamed(
    old: Struct, new: Struct, within: tuple[str, ...], told: ColumnOptions, ledger: ColumnNotes
) -> dict[str, str]:
    """Return the old name for each new name that has one."""
    found: dict[str, str] = {}
    for name in new.names:
        said = told.old_name(name, within)
        if said is not None and said in old.names:
            found[name] = said
    for name in new.names:
        if name in found or told.default(name, within)[0]:
            continue
        if name in old.names and name not in found.values():
            found[name] = name
    left = [name for name in new.names if name not in found and not told.default(name, within)[0]]
    spare = [name for name in old.names if name not in found.values()]
    for name in left:
        twin = _twin(name, old, new, left, spare, within)
        if twin is not None and twin not in found.values():
            found[name] = twin
            ledger.note(f"{name} is {twin}, renamed")
    return found


def _twin(
    name: str, old: Struct, new: Struct, left: list[str], spare: list[str], within: tuple[str, ...]
) -> str | None:
    """Return the old name of a renamed column, if only one name is possible."""
    fitting = [one for one in spare if widens(old.field(one).type, new.field(name).type)]
    alike = [one for one in fitting if _bare(one) == _bare(name)]
    if len(alike) == 1:
        return alike[0]
    # A key column is more likely another one than renamed: `country` is gone, `city` is new.
    only = len(left) == len(spare) == 1 and len(old.fields) == len(new.fields)
    return fitting[0] if fitting and only and within[0] == VALUE else None


def _bare(name: str) -> str:
    return name.replace("_", "").casefold()


def take(
    old: Field, new: Field, source: tuple[str, ...], told: ColumnOptions, ledger: ColumnNotes
) -> Column:
    before, after = stored(old.type), stored(new.type)
    if isinstance(before, Struct) and isinstance(after, Struct) and before != after:
        inner = match_struct(before, after, source, told, ledger)
        return Column(new.name, source, None, inner)
    if not widens(before, after):
        raise NotCarried(
            f"{ledger.where}: {'.'.join(source[1:])} is {ddl(before)} and would be {ddl(after)}",
            "Not every value of the old type fits the new type.",
            "Keep the type, convert the values with a function (--with MIGRATION.py), or start "
            "over in "
            f"this column: --default {new.name}=VALUE.",
        )
    if before != after:
        ledger.note(f"{new.name} widens from {ddl(before)} to {ddl(after)}")
    return Column(new.name, source)


def fill(
    new: Field,
    within: tuple[str, ...],
    told: ColumnOptions,
    ledger: ColumnNotes,
    initial: Any = None,
) -> Column:
    is_told, value = told.default(new.name, within)
    if is_told:
        ledger.note(f"{new.name} is {value!r} for every existing key")
        return Column(new.name, (), value)
    if initial is None and not new.nullable:
        shown = ".".join((*within[1:], new.name))
        raise NotCarried(
            f"{ledger.where}: {shown} {ddl(new.type)} is new and may not be null, and has no value "
            "for the existing keys",
            "The old state has no such column.",
            f"Give the value (--default {shown}=VALUE) or the old column (--rename OLD={shown}).",
        )
    words = "null" if initial is None else repr(initial)
    ledger.note(
        f"{new.name} is new: {words} for every existing key, so it covers only later records"
    )
    return Column(new.name, (), initial)


def match_key(
    old: Struct, new: Struct, told: ColumnOptions, ledger: ColumnNotes
) -> tuple[Column, ...]:
    """Match the new key's columns; each must come from the old key."""
    old, new = distinct(old), distinct(new)
    renamed = _renamed(old, new, (KEY,), told, ledger)
    columns = []
    for wanted in new.fields:
        source = renamed.get(wanted.name)
        if source is None:
            raise NotCarried(
                f"{ledger.where}: the key has a column {wanted.name} that the old state lacks",
                f"The old key is ({ddl(old)}), so floodmark cannot split its rows by "
                f"{wanted.name}.",
                f"If it is another name of an old column: --rename OLD={wanted.name}. If it "
                "can be computed from the old row: --with MIGRATION.py. Else begin with an empty "
                "state: `floodmark upgrade CP NEW --without-state`.",
            )
        columns.append(take(old.field(source), wanted, (KEY, source), told, ledger))
    return tuple(columns)


def dropped(old: Struct, columns: tuple[Column, ...], part: str = KEY) -> tuple[str, ...]:
    """Return the old columns that no new column uses."""
    used = {column.source[1] for column in columns if column.source[:1] == (part,)}
    return tuple(name for name in distinct(old).names if name not in used)
