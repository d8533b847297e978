"""How tests carry out changes: at once, without a pause to see whether a query still writes."""

from __future__ import annotations

from floodmark.changes.apply import Carrying
from floodmark.changes.in_use import Clock

GO = Carrying(execute=True, clock=Clock(pause=lambda seconds: None))
