"""Reads Hudi's offsets: the commit up to which a table is read. Pure.

`{"commitTime":…}` (HoodieSourceOffset), since 1.0 `{"offsetCommitTime":…}`. A reader of one form
reads the other as null, because it ignores unknown fields.
"""

from __future__ import annotations

from typing import Any

from floodmark.connectors.source import FormedKind, arrow, has_fields

_OLD = frozenset({"commitTime"})
_FORMS = (_OLD, frozenset({"offsetCommitTime"}))


class Hudi(FormedKind):
    name = "hudi"
    asked_with = "--table PATH"
    can_be_asked = True
    plain_words = True
    told_by = "the time of a commit"
    no_option = "Hudi's starting instant reads its own commit again."

    def has_form(self, offset: Any) -> bool:
        is_form = any(has_fields(offset, form) for form in _FORMS)
        return is_form and type(instant_of(offset)) is str

    def explain(self, end: Any, start: Any) -> list[str]:
        return [f"commit {arrow(instant_of(start), instant_of(end))}"]


def is_old_form(offset: Any) -> bool:
    """Whether a release before 1.0 wrote the offset; later releases read it as null."""
    return has_fields(offset, _OLD)


def instant_of(offset: Any) -> str | None:
    """Return the time of the commit that was read last, as Hudi writes times."""
    return next(iter(offset.values()), None) if isinstance(offset, dict) else None


KIND = Hudi()
