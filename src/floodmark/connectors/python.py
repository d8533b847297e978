"""Reads offsets of data sources written in Python: any JSON that their author chose. Pure.

PySpark writes it with json.dumps (PythonStreamingSourceOffset), which puts spaces where almost no
connector of the JVM does (MongoDB's does).
"""

from __future__ import annotations

import json

from floodmark.connectors.source import Recognised, SourceKind, Traces


class PythonSource(SourceKind):
    name = "python"
    any_format = True
    any_form = True
    no_option = "A data source written in Python begins where its own code says."

    def recognise(self, traces: Traces) -> Recognised | None:
        # Kinds with fields that nobody else chooses recognise their own form, and are more sure.
        if traces.has_lead_byte or not traces.may_be_pythons or not _is_spaced(traces):
            return None
        return self.probable("JSON spaced as Python writes it")


def _is_spaced(traces: Traces) -> bool:
    offset = traces.offset
    if not isinstance(offset, (dict, list)):
        return False
    try:
        return traces.text == json.dumps(offset) != json.dumps(offset, separators=(",", ":"))
    except (ValueError, RecursionError):
        return False


KIND = PythonSource()
