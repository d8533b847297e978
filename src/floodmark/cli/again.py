"""Repeats the user's command line with more options, so that it can be pasted."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence


def again(arguments: Sequence[str], *more: str) -> str:
    """Return the command with `more` before its own `--`, and without secrets."""
    from floodmark.secret_text import redacted, remember_environment

    end = arguments.index("--") if "--" in arguments else len(arguments)
    remember_environment(os.environ)
    return redacted(shlex.join(["floodmark", *arguments[:end], *more, *arguments[end:]]))
