"""Repeats the user's command line with more options, so that it can be pasted."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence


def again(arguments: Sequence[str], *more: str) -> str:
    """Return the command with `more` before its own `--`; secrets are hidden, which is said."""
    from floodmark.addresses import HIDDEN
    from floodmark.secret_text import redacted, remember_environment

    end = arguments.index("--") if "--" in arguments else len(arguments)
    remember_environment(os.environ)
    whole = shlex.join(["floodmark", *arguments[:end], *more, *arguments[end:]])
    shown = redacted(whole)
    if shown.count(HIDDEN) > whole.count(HIDDEN):
        shown += f"\n  Put your own value in the place of each {HIDDEN}."
    return shown
