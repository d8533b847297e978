"""Makes text from a checkpoint safe to show: no character of it can control a terminal.

A name, an offset or a value in a checkpoint is whatever its writer liked. Characters that move a
cursor, change colours, change the reading direction or have no width are shown by their numbers:
`\\x1b`, `\\u202e`.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Controls (C0, DEL, C1), soft hyphen, what Unicode calls format characters, fillers that
# look like nothing, line and paragraph separators, halves of surrogate pairs, tags.
_CONTROL = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\ud800-\udfff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)


@lru_cache(maxsize=2)
def _pattern(one_line: bool) -> re.Pattern[str]:
    return re.compile(f"[{_CONTROL}\n]" if one_line else f"[{_CONTROL}]")


def visible(text: str) -> str:
    """Return the text with line feeds, and every other control character as its number."""
    return text if text.isascii() and text.isprintable() else _pattern(False).sub(_number, text)


def one_line(text: str) -> str:
    """Return the text with line feeds shown as well: a name cannot begin a new line."""
    return text if text.isascii() and text.isprintable() else _pattern(True).sub(_number, text)


def json_visible(text: str) -> str:
    """Return a JSON document with these characters as JSON escapes; its data stays the same.

    JSON itself escapes the first 32, but not DEL, C1 and the others.
    """
    # DEL is the one ASCII character that JSON does not escape and that is invisible.
    if text.isascii() and "\x7f" not in text:
        return text
    return _pattern(False).sub(_json_number, text)


def _number(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == 10:
        return "\\n"
    return f"\\x{code:02x}" if code < 0x100 else _wide(code)


def _wide(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_number(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
