"""Decides whether a type holds every value of another, so that a column may be widened."""

from __future__ import annotations

from floodmark.state.rows.types import Array, Atom, DataType, Decimal, Map, Struct, is_text, stored

_INTEGERS = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}


def widens(old: DataType, new: DataType) -> bool:
    """Whether every value fits; a long in a double is checked value by value."""
    old, new = stored(old), stored(new)
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return new.scale >= old.scale and (new.precision - new.scale >= old.precision - old.scale)
    if isinstance(old, Array) and isinstance(new, Array):
        return widens(old.element, new.element)
    if isinstance(old, Map) and isinstance(new, Map):
        return widens(old.key, new.key) and widens(old.value, new.value)
    if isinstance(old, Struct) and isinstance(new, Struct):
        return len(old.fields) == len(new.fields) and all(
            a.name == b.name and widens(a.type, b.type)
            for a, b in zip(old.fields, new.fields, strict=True)
        )
    if isinstance(old, Atom) and isinstance(new, Decimal):
        digits = _DIGITS.get(old.name)
        return digits is not None and new.precision - new.scale >= digits
    if isinstance(old, Atom) and isinstance(new, Atom):
        return _atom_widens(old, new)
    return False


def _atom_widens(old: Atom, new: Atom) -> bool:
    if old.name == new.name or (is_text(old) and is_text(new)) or old.name == "void":
        return True
    if old.name in _INTEGERS and new.name in _INTEGERS:
        return _INTEGERS.index(old.name) < _INTEGERS.index(new.name)
    if new.name == "double":
        return old.name == "float" or old.name in _INTEGERS
    return new.name == "float" and old.name in ("byte", "short")
