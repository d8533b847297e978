"""Data sources written in Python: the offset is whatever JSON their author chose. Pure.

PySpark writes it with json.dumps (PythonStreamingSourceOffset): spaces stand where no connector
of the JVM puts any.
"""

from __future__ import annotations

import json
from typing import Any

from floodmark.connectors.source import Recognised, SourceKind, Sureness, Traces


class PythonSource(SourceKind):
    name = "python"
    any_format = True
    any_form = True
    no_option = "A data source written in Python begins where its own code says."

    def recognise(self, traces: Traces) -> Recognised | None:
        # Forms with fields that no two authors choose are told before, by their own kinds.
        if traces.has_lead_byte or not is_spaced_by_python(traces.offset, traces.text):
            return None
        return Recognised(self.name, Sureness.PROBABLE, "JSON spaced as Python writes it")


def is_spaced_by_python(offset: Any, text: str | None) -> bool:
    if not isinstance(offset, (dict, list)) or text is None:
        return False
    if ": " not in text and ", " not in text:
        return False
    try:
        return text == json.dumps(offset) != json.dumps(offset, separators=(",", ":"))
    except (ValueError, RecursionError):
        return False


KIND = PythonSource()
