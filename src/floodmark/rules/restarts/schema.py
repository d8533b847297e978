"""Compares state schemas as Spark does: types by position, names not at all."""

from __future__ import annotations

import json
from typing import Any

from floodmark.checkpoint.plan.spark_json import WATERMARK_DELAY


def fields(schema_json: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(schema_json).get("fields", [])
    except (ValueError, AttributeError, RecursionError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def names(schema_json: str) -> list[str]:
    return [str(one.get("name")) for one in fields(schema_json)]


def spark_accepts(held_json: str, new_json: str) -> bool:
    """Whether Spark's check of a state schema passes: a column may lose nulls, but not gain
    them.
    """
    return _accepts(_struct(held_json), _struct(new_json))


def types_differ(held_json: str, new_json: str) -> bool:
    """Whether they differ in more than whether values may be null."""
    return not _accepts(_all_nullable(_struct(held_json)), _struct(new_json))


def _struct(schema_json: str) -> dict[str, Any]:
    return {"type": "struct", "fields": fields(schema_json)}


def _accepts(held: Any, new: Any) -> bool:
    if isinstance(held, dict) and isinstance(new, dict) and held.get("type") == new.get("type"):
        kind = held.get("type")
        if kind == "struct":
            before, after = held.get("fields", []), new.get("fields", [])
            return len(before) == len(after) and all(
                _nulls(one.get("nullable"), other.get("nullable"))
                and _accepts(one.get("type"), other.get("type"))
                for one, other in zip(before, after, strict=True)
            )
        if kind == "array":
            return _nulls(held.get("containsNull"), new.get("containsNull")) and _accepts(
                held.get("elementType"), new.get("elementType")
            )
        if kind == "map":
            return (
                _nulls(held.get("valueContainsNull"), new.get("valueContainsNull"))
                and _accepts(held.get("keyType"), new.get("keyType"))
                and _accepts(held.get("valueType"), new.get("valueType"))
            )
    return bool(held == new)


def _nulls(held: Any, new: Any) -> bool:
    return bool(held) or not new


def _all_nullable(value: Any) -> Any:
    if isinstance(value, dict):
        flags = ("nullable", "containsNull", "valueContainsNull")
        return {key: True if key in flags else _all_nullable(one) for key, one in value.items()}
    return [_all_nullable(one) for one in value] if isinstance(value, list) else value


def words(schema_json: str) -> str:
    """Return a schema in words: `customerId string, total decimal(22,2)`."""
    return ", ".join(f"{one.get('name')} {_type(one.get('type'))}" for one in fields(schema_json))


def _type(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    if value.get("type") == "struct":
        inside = ", ".join(
            f"{one.get('name')}: {_type(one.get('type'))}" for one in value.get("fields", [])
        )
        return f"struct<{inside}>"
    if value.get("type") == "array":
        return f"array<{_type(value.get('elementType'))}>"
    if value.get("type") == "map":
        return f"map<{_type(value.get('keyType'))}, {_type(value.get('valueType'))}>"
    return str(value.get("type"))


def difference(held_json: str, new_json: str) -> str:
    """Return how two schemas differ: `n long is new; k may be null now`."""
    said = _differences(fields(held_json), fields(new_json), "")
    return "; ".join(said) or f"{words(new_json)}, in another form"


def _differences(before: list[Any], after: list[Any], within: str) -> list[str]:
    old, new = ({str(one.get("name")): one for one in found} for found in (before, after))
    gone, came = [one for one in old if one not in new], [one for one in new if one not in old]
    both = [name for name in new if name in old]
    said = []
    if len(gone) == len(came) == 1 and len(old) == len(new):
        said.append(f"{_column(new[came[0]], within)} takes the place of {_column(old[gone[0]])}")
    else:
        said += [f"{_column(new[one], within)} is new" for one in came]
        said += [f"{_column(old[one], within)} is gone" for one in gone]
    for name in both:
        said += _changes(f"{within}{name}", old[name], new[name])
    if not said and both != list(old):
        said.append(f"the order is {', '.join(new)}; it was {', '.join(old)}")
    return said


def _column(one: dict[str, Any], within: str = "") -> str:
    return f"{within}{one.get('name')} {_type(one.get('type'))}"


def _changes(name: str, held: dict[str, Any], new: dict[str, Any]) -> list[str]:
    was, now = held.get("type"), new.get("type")
    if not _nulls(held.get("nullable"), new.get("nullable")):
        return [f"{name} may be null now, and could not be before"]
    if isinstance(was, dict) and isinstance(now, dict) and was.get("type") == now.get("type"):
        if was.get("type") == "struct":
            return _differences(was.get("fields", []), now.get("fields", []), f"{name}.")
        if not _accepts(was, now) and _accepts(_all_nullable(was), _all_nullable(now)):
            return [f"{name} may have nulls inside now, and could not before"]
    return [] if _type(was) == _type(now) else [f"{name} is {_type(now)}, and was {_type(was)}"]


def renamed(held_json: str, new_json: str) -> list[tuple[str, str]]:
    """Return columns with the same type and position and another name, also inside structs."""
    return _renamed(_struct(held_json), _struct(new_json))


def renamed_words(held_json: str, new_json: str) -> str | None:
    """Return the renamed columns in words: `a becomes b, c becomes d`."""
    return ", ".join(f"{old} becomes {now}" for old, now in renamed(held_json, new_json)) or None


def is_same(held_json: str, new_json: str) -> bool:
    """Whether Spark accepts the types and the names are the same."""
    return spark_accepts(held_json, new_json) and not renamed(held_json, new_json)


def _renamed(held: Any, new: Any) -> list[tuple[str, str]]:
    if not (isinstance(held, dict) and isinstance(new, dict)):
        return []
    found = []
    for one, other in zip(held.get("fields", []), new.get("fields", []), strict=False):
        if one.get("name") != other.get("name"):
            found.append((str(one.get("name")), str(other.get("name"))))
        found += _renamed(one.get("type"), other.get("type"))
    return found


def delays(schema_json: str) -> list[int]:
    """Return the watermark delays, which are in the metadata of the columns."""
    found: list[int] = []
    _delays(_struct(schema_json), found)
    return found


def _delays(value: Any, found: list[int]) -> None:
    if not isinstance(value, dict):
        return
    for one in value.get("fields", []):
        delay = one.get("metadata", {}).get(WATERMARK_DELAY)
        if isinstance(delay, int):
            found.append(delay)
        _delays(one.get("type"), found)
