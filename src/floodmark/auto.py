"""Supervises every start() of this process from `import floodmark.auto` on.

One line at the top of a script or in the first cell of a notebook is enough, under `python`,
spark-submit or a scheduler. Each writeStream….start() and toTable() is checked first, holds a
lease, leaves a note and reports its batches on standard error; SIGTERM lets the running batch
finish. FLOODMARK_ALLOW has the names of rules, with commas, in spite of which to start.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

from floodmark.engine.app.patching import Patches
from floodmark.engine.app.supervised import Supervision, Supervisor
from floodmark.engine.run.live_table import PlainView
from floodmark.engine.run.signals import StopSignals
from floodmark.engine.start.before_start import allowed_rules
from floodmark.engine.start.launch import fingerprint_of

__all__ = ["supervisor"]


def _supervise() -> Supervisor:
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    name = Path(main).stem if main else "application"
    given = os.environ.get("FLOODMARK_ALLOW", "")
    allowed = allowed_rules(one.strip() for one in given.split(",") if one.strip())
    what = Supervision(name, main, fingerprint_of(main), allowed)
    made = Supervisor(what, PlainView([name]), StopSignals())
    made.attach(Patches())
    atexit.register(made.close)
    return made


supervisor = _supervise()
