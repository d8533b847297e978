"""Runs `floodmark` and kills this very process with SIGKILL before its n-th change of the disk.

python killed.py N ARGUMENTS...      N = 0 only counts, and prints the number
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

AT = int(sys.argv[1])
NAMES = ("replace", "link", "unlink", "mkdir")
count = 0


def counted(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        global count
        count += 1
        if count == AT:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)

    return call


for name in NAMES:
    setattr(os, name, counted(getattr(os, name)))

from floodmark.cli.main import run  # noqa: E402

status = run(sys.argv[2:])
if AT == 0:
    print(count)
sys.exit(status)
