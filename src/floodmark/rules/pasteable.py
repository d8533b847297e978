"""Puts the places that a user works with into the commands that rules name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping


def with_places(words: str, places: Mapping[str, str]) -> str:
    """`floodmark upgrade CP NEW` with what CP and NEW are; a name without a place is left out."""
    for name, place in places.items():
        quoted = (f" {shlex.quote(place)}" if place else "").replace("\\", r"\\")
        words = re.sub(rf"(`floodmark [^`]*?) {re.escape(name)}(?=[ `])", rf"\1{quoted}", words)
    return words
