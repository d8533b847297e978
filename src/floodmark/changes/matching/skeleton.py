"""Prints a MIGRATION.py for `migrate --skeleton`, with both schemas. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from floodmark.changes.planners.kept_operators import Drawn, Kept
from floodmark.checkpoint.operator_kinds import JOIN
from floodmark.state.rows.given_rows import GIVEN, given_key, given_value
from floodmark.state.rows.types import Struct, ddl, distinct
from floodmark.state.shapes.operators import Reading
from floodmark.visible import one_line

_HEAD = '''"""Carries the state of {path} over to {app}.

Each function gets the old rows of one operator as a DataFrame of `key` and `value`, and
returns those of the new code. Leave out a function to let floodmark match its columns.
Keys that become one: merge = {{"sum": "sum", "max": "max"}}, or a function of a key and of the
values that it has now, which gives one of them: def merge(key, values): return {{"sum": …}}
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
'''


def render_skeleton(path: str, app: str, old: Sequence[Kept], drawn: Drawn) -> str:
    parts = [_HEAD.format(path=_quoted(path), app=_quoted(app))]
    for one in drawn.operators:
        before = next((k for k in old if k.operator.kind == one.operator.kind), None)
        parts += _functions(one, before)
    return "\n\n".join(parts)


def _functions(new: Kept, old: Kept | None) -> Iterator[str]:
    number, words = new.operator.number, one_line(new.operator.words)
    if old is None:
        yield f"# {words} is new: it starts empty.\n"
        return
    if new.operator.kind == JOIN:
        yield f"# {words}: the rows of a join are matched by their columns.\n"
        return
    theirs = {(r.family or r.folder): r for r in old.readings}
    for reading in new.readings:
        name = reading.family or reading.folder
        before = theirs.get(name)
        if before is None or name.startswith("$") or reading.shape not in GIVEN:
            continue
        suffix = f"_{name}" if len(new.readings) > 1 else ""
        yield _function(f"operator_{number}{suffix}", new.operator.name, before, reading)


def _function(name: str, operator: str | None, old: Reading, new: Reading) -> str:
    return f'''def {name}(state: DataFrame) -> DataFrame:
    """{_quoted(operator or "state")}

    old key    {_words(given_key(old))}
    old value  {_words(given_value(old))}
    new key    {_words(given_key(new))}
    new value  {_words(given_value(new))}
    """
    return state.select(
        F.struct(
{_columns("key", given_key(old), given_key(new))}
        ).alias("key"),
        F.struct(
{_columns("value", given_value(old), given_value(new))}
        ).alias("value"),
    )
'''


def _words(schema: Struct) -> str:
    return _quoted(ddl(distinct(schema)))


def _quoted(text: str) -> str:
    """Quote a text for a Python string: a name of the checkpoint must not become code."""
    return one_line(text.replace("\\", "\\\\").replace('"', '\\"'))


def _columns(part: str, old: Struct, new: Struct) -> str:
    known = set(distinct(old).names)
    lines = []
    for one in distinct(new).fields:
        name = _quoted(one.name)
        if one.name in known:
            lines.append(f'            F.col("{part}.{name}").alias("{name}"),')
        else:
            kind = _quoted(ddl(one.type))
            hint = "" if one.nullable else "  # may not be null: put a value here"
            lines.append(f'            F.lit(None).cast("{kind}").alias("{name}"),{hint}')
    return "\n".join(lines)
