"""Puts the user's own paths into the commands in rule texts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping


def with_places(words: str, places: Mapping[str, str]) -> str:
    """Replace CP and NEW in `floodmark upgrade CP NEW` by paths; drop a name without a path.

    A command without backquotes is recognised by its verb, which CP follows at once.
    """
    for name, place in places.items():
        quoted = (f" {shlex.quote(place)}" if place else "").replace("\\", r"\\")
        word = re.escape(name)
        words = re.sub(rf"(`floodmark [^`]*?) {word}(?=[ `])", rf"\1{quoted}", words)
        words = re.sub(rf"(floodmark [a-z-]+) {word}(?=[ .,;]|$)", rf"\1{quoted}", words)
    return words
