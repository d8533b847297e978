"""Describes what Spark's JSON leaves out of a static table: its location and its format.

Options become a digest, as they may hold secrets.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from floodmark.checkpoint.plan.tree import SOURCE_CODE
from floodmark.engine.code.digests.pickled_code import python_digest
from floodmark.engine.spark.scala import jvm_field, scala_map, sequence
from floodmark.errors import WrongUse
from floodmark.secret_text import names_secret

KINDS = ("LogicalRelation", "DataSourceV2Relation")
UNTOLD = "untold"
_ADDRESS = re.compile(r"@[0-9a-f]+")


def static_facts(leaf: Any) -> dict[str, Any]:
    """Return `reads` and `format`, and under `untold` what cannot be seen."""
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
    # Columns of CSV files are found by position, those of other files by name.
    columns = str(relation.dataSchema().simpleString()) if "CSV" in kind else ""
    return {"reads": paths, "format": _digest(kind, options, columns, _version(location))}


def _version(location: Any) -> str:
    """Return the version of a Delta table that is read at a fixed version, else ''."""
    if str(location.getClass().getSimpleName()) != "TahoeLogFileIndex":
        return ""
    return str(location.versionToUse().toString())


def _database(relation: Any) -> dict[str, Any]:
    options = scala_map(relation.jdbcOptions().parameters())
    return {"reads": "a database", "format": _digest(_meaningful(options))}


def source_facts(leaf: Any) -> dict[str, Any]:
    """Return a digest of what a source written in Python does; an empty dict for other sources."""
    from py4j.protocol import Py4JError

    try:
        table = leaf.table()
    except (Py4JError, TypeError):
        return {}
    if str(table.getClass().getSimpleName()) != "PythonTable":
        return {}
    code = _source_code(table)
    return (
        {UNTOLD: f"the code of the source {table.name()}"} if code is None else {SOURCE_CODE: code}
    )


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
    """Digest the code of a source written in Python, which Spark keeps in fields of its own."""
    from py4j.protocol import Py4JError

    try:
        return python_digest(jvm_field(table, "ds").source().dataSourceCls())
    except (Py4JError, TypeError, WrongUse):
        return None


def _meaningful(options: Mapping[str, str], without: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the options without secrets: a new password reads the same table."""
    return {k: v for k, v in options.items() if k not in without and not names_secret(k)}


def _digest(*told: object) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
