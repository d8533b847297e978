"""What Spark's JSON does not tell of a static table: where it is read from, and how.

Options go into a digest, as they may hold what nobody should see.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from floodmark.engine.code.pickled_code import python_digest
from floodmark.engine.spark.scala import jvm_field, scala_map, sequence
from floodmark.errors import WrongUse
from floodmark.secret_text import names_secret

KINDS = ("LogicalRelation", "DataSourceV2Relation")
UNTOLD = "untold"
_ADDRESS = re.compile(r"@[0-9a-f]+")


def static_facts(leaf: Any) -> dict[str, Any]:
    """`reads` and `format`; under `untold`, what cannot be seen."""
    from py4j.protocol import Py4JError

    if str(leaf.getClass().getSimpleName()) == "DataSourceV2Relation":
        return _connector(leaf)
    relation = leaf.relation()
    for ask in (_files, _database):
        try:
            return ask(relation)
        except (Py4JError, TypeError):
            continue  # another kind of relation
    text = str(leaf.simpleString(1_000_000))
    reads, _, words = text.partition("[")[0], "", text.partition("]")[2]
    kind = str(relation.getClass().getSimpleName())
    hidden = {UNTOLD: f"the options of a {kind}"} if _ADDRESS.search(words) else {}
    return {"reads": reads, "format": _digest(_ADDRESS.sub("", words)), **hidden}


def _files(relation: Any) -> dict[str, Any]:
    location = relation.location()
    paths = [str(one.toString()) for one in sequence(location.rootPaths())]
    kind = str(relation.fileFormat().getClass().getSimpleName())
    options = _meaningful(scala_map(relation.options()), without=("path",))
    # Columns of these files go by their place, those of others by their name.
    columns = str(relation.dataSchema().simpleString()) if "CSV" in kind else ""
    return {"reads": paths, "format": _digest(kind, options, columns, _version(location))}


def _version(location: Any) -> str:
    """Of a Delta table that is read as it once was; without, the newest is read each time."""
    if str(location.getClass().getSimpleName()) != "TahoeLogFileIndex":
        return ""
    return str(location.versionToUse().toString())


def _database(relation: Any) -> dict[str, Any]:
    options = scala_map(relation.jdbcOptions().parameters())
    return {"reads": "a database", "format": _digest(_meaningful(options))}


def _connector(leaf: Any) -> dict[str, Any]:
    found = leaf.options().asCaseSensitiveMap()
    options = {str(key).lower(): str(found.get(key)) for key in found.keySet().toArray()}
    table = leaf.table()
    told = [
        str(leaf.simpleString(1_000_000)).partition("]")[2],
        _meaningful(options),
        _asked(leaf, "timeTravelSpec"),  # SELECT … VERSION AS OF, since Spark 4.1
        _asked(table, "snapshotId"),  # Iceberg's
        _asked(table, "branch"),
    ]
    facts: dict[str, Any] = {"reads": str(table.name())}
    if str(table.getClass().getSimpleName()) == "PythonTable":
        code = _source_code(table)
        if code is None:
            facts[UNTOLD] = f"the code of the source {table.name()}"
        told.append(code or "")
    return {**facts, "format": _digest(*told)}


def _asked(owner: Any, method: str) -> str:
    from py4j.protocol import Py4JError

    try:
        found = getattr(owner, method)()
    except (Py4JError, TypeError):
        return ""
    return _ADDRESS.sub("", str(found.toString() if hasattr(found, "toString") else found))


def _source_code(table: Any) -> str | None:
    """Of a source that is written in Python: Spark has it behind fields of its own."""
    from py4j.protocol import Py4JError

    try:
        return python_digest(jvm_field(table, "ds").source().dataSourceCls())
    except (Py4JError, TypeError, WrongUse):
        return None


def _meaningful(options: Mapping[str, str], without: tuple[str, ...] = ()) -> dict[str, str]:
    """A new password reads the same table."""
    return {k: v for k, v in options.items() if k not in without and not names_secret(k)}


def _digest(*told: object) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
