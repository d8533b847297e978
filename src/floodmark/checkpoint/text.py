"""Parses what all log files of a checkpoint share: UTF-8 lines after a version line."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any

from floodmark.errors import MalformedFile, UnknownVersion

_DEEPEST = 200
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_VERSIONS = {"v1": 1, "v2": 2, "v3": 3}


def decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
        raise MalformedFile(f"not UTF-8 text: byte {at} is 0x{data[at]:02x}") from None


def split_version(text: str, newest: int) -> tuple[int, str]:
    """Return the version in the first line (`v1`), and the text after that line."""
    if not text:
        raise MalformedFile("the file is empty", "A crash or a full disk interrupted its write.")
    line, _, rest = text.partition("\n")
    return parse_version(line, newest), rest


def parse_version(line: str, newest: int) -> int:
    known = _VERSIONS.get(line)
    if known is not None and known <= newest:
        return known
    line = line.rstrip("\r")
    digits = line[1:]
    # isdecimal alone would accept the digits of other scripts, which Spark does not write.
    if not (line.startswith("v") and digits.isascii() and digits.isdecimal()) or digits[0] == "0":
        raise MalformedFile(f"the first line is {shorten(line)!r}, not a version such as 'v1'")
    # The length is looked at first: int() refuses thousands of digits.
    if len(digits) > 9 or int(digits) > newest:
        raise UnknownVersion(shorten(line), f"v{newest}")
    return int(digits)


def lines_of(text: str) -> list[str]:
    """Return the lines; a line feed at the end ends a line and does not begin another."""
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def is_too_deep(text: str) -> bool:
    """Whether JSON is nested too deeply to walk through. Spark's has a few levels."""
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    depth = 0
    for sign in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if sign in "[{" else -1
        if depth > _DEEPEST:
            return True
    return False


def parse_json(text: str, what: str) -> Any:
    if is_too_deep(text):
        raise MalformedFile(f"{what} is not JSON (nested too deeply): {shorten(text)!r}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "nested too deeply")
        raise MalformedFile(f"{what} is not JSON ({reason}): {shorten(text)!r}") from None


def parse_json_object(text: str, what: str) -> dict[str, Any]:
    value = parse_json(text, what)
    if not isinstance(value, dict):
        raise MalformedFile(f"{what} is not a JSON object: {shorten(text)!r}")
    return value


def long_of(fields: dict[str, Any], key: str, what: str, default: int | None = None) -> int:
    """Return a whole number of a JSON object, within the bounds of Java's long."""
    value = fields.get(key, default)
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise MalformedFile(f"{what}: {key} is {shorten(repr(value))}, not a whole number")
    return value


def shorten(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def moment(time_ms: int) -> str:
    """Return a time for people, in UTC."""
    try:
        at = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"  # Java's longs reach further than calendars do
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def several(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def compact_json(value: Any) -> str:
    """Return JSON with the spacing of Spark's own writers."""
    return json_text(value, separators=(",", ":"))


def json_text(value: Any, **how: Any) -> str:
    """Return JSON that UTF-8 can hold: half of a surrogate pair is escaped."""
    text = json.dumps(value, ensure_ascii=False, **how)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
