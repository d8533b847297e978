"""Hudi: the commit up to which a table is read. Pure.

`{"commitTime":…}` (HoodieSourceOffset), since 1.0 `{"offsetCommitTime":…}`.
"""

from __future__ import annotations

from floodmark.connectors.source import Recognised, SourceKind, Sureness, Written, has_fields

_FORMS = (frozenset({"commitTime"}), frozenset({"offsetCommitTime"}))


class Hudi(SourceKind):
    name = "hudi"
    no_option = "Hudi's starting instant reads its own commit again."

    def recognise(self, written: Written) -> Recognised | None:
        if any(has_fields(written.offset, form) for form in _FORMS):
            return Recognised(self.name, Sureness.CERTAIN, "the time of a commit")
        return None


KIND = Hudi()
