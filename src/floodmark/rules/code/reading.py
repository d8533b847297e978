"""Turns a Python file, or a pipeline's SQL, into facts: parsed once, walked once."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from floodmark.checkpoint.conf_keys import MASTER
from floodmark.rules.code.chains import CallChain, chain_of
from floodmark.rules.code.deletions import deletions_of
from floodmark.rules.code.dstreams import dstreams_of
from floodmark.rules.code.facts import Code, DStreams, Option
from floodmark.rules.code.flow import flows_of
from floodmark.rules.code.notebook import to_python
from floodmark.rules.code.scopes import WAITING, Place, walk
from floodmark.rules.code.sql_flows import sql_flows
from floodmark.rules.code.stream import options_of, reads_of, streams_of
from floodmark.rules.code.values import value_of

# A file without any of these words has no streams: only its syntax is checked.
_OF_STREAMS = re.compile(
    r"Stream|checkpoint|txnAppId|foreachBatch|pipelines|\bdlt\b", re.IGNORECASE
)
_DATABRICKS = re.compile(r"# Databricks notebook source|\bdbutils\.|vnd\.databricks")
_ALLOW = re.compile(r"(?:#|--)\s*floodmark:\s*allow\s+([a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)")


def read_code(path: str, text: str) -> Code:
    if path.endswith(".ipynb"):
        return _read_notebook(path, text)
    if path.endswith(".sql"):
        return Code(path, flows=sql_flows(text), allowed=_allowed(text))
    return _read(path, text)


def not_python(path: str, reason: str, line: int | None = None) -> Code:
    return Code(path, reason, line)


def _read_notebook(path: str, text: str) -> Code:
    try:
        python, places = to_python(text)
    except (ValueError, RecursionError) as error:
        return not_python(path, f"not a notebook: {error}")
    code = _read(path, python)
    databricks = code.on_databricks or bool(_DATABRICKS.search(text))
    return replace(code, lines=tuple(places), on_databricks=databricks)


def _read(path: str, text: str) -> Code:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about the user's code, not ours
            if not _OF_STREAMS.search(text):
                compile(text, path, "exec", dont_inherit=True)
                return Code(path)
            tree = ast.parse(text, path)
    except SyntaxError as error:
        return Code(path, error.msg or "invalid syntax", error.lineno, newer=_newer(error))
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return not_python(path, str(error) or "nested too deeply")
    try:
        return _facts(path, text, tree)
    except RecursionError:
        return not_python(path, "nested too deeply to be looked at")


def _newer(error: SyntaxError) -> bool:
    """Whether Python 3.12 or later may be able to parse what this Python cannot."""
    return sys.version_info < (3, 12) and (error.msg or "").startswith("f-string")


def _facts(path: str, text: str, tree: ast.Module) -> Code:
    found = walk(tree)
    places = [(place, chain_of(place.node, place.scope)) for place in found.places]
    uses_dstreams = "StreamingContext" in text
    confs, master = _confs(places)
    streams, flows = flows_of(tree, found)
    return Code(
        path,
        streams=(*streams_of(found, places), *streams),
        flows=flows,
        reads=reads_of(places),
        write_options=_write_options(places),
        confs=confs,
        deletions=deletions_of(places),
        dstreams=dstreams_of(found, places) if uses_dstreams else DStreams(),
        runs_locally=master,
        on_databricks=bool(_DATABRICKS.search(text)),
        waits=_waits(places),
        allowed=_allowed(text),
    )


def _allowed(text: str) -> Mapping[int, frozenset[str]]:
    if "floodmark:" not in text:
        return MappingProxyType({})
    return MappingProxyType(
        {
            number: frozenset(name.strip() for name in found[1].split(","))
            for number, line in enumerate(text.split("\n"), 1)
            if (found := _ALLOW.search(line))
        }
    )


def _confs(places: list[tuple[Place, CallChain]]) -> tuple[tuple[Option, ...], bool]:
    """Return the settings of the session, and whether its master is local."""
    confs: dict[tuple[str, int], Option] = {}
    local = False
    for _, chain in places:
        for link in chain.links:
            if link.call is None or not link.call.args:
                continue
            first = value_of(link.call.args[0], link.scope)
            if link.name in ("master", "setMaster"):
                local = local or first.pattern.startswith("local")
            elif link.name in ("set", "config") and len(link.call.args) > 1:
                key = first.literal or ""
                if not key.startswith("spark."):
                    continue
                value = value_of(link.call.args[1], link.scope)
                local = local or (key == MASTER and value.pattern.startswith("local"))
                confs[key, link.line] = Option(key, value, link.line)
    return tuple(confs.values()), local


def _waits(places: list[tuple[Place, CallChain]]) -> tuple[int, ...]:
    return tuple(
        sorted({link.line for _, chain in places for link in chain.links if link.name in WAITING})
    )


def _write_options(places: list[tuple[Place, CallChain]]) -> tuple[Option, ...]:
    found: dict[tuple[str, int], Option] = {}
    for _, chain in places:
        at = chain.index("write")
        if at is not None:
            for option in options_of(chain.links[at + 1 :])[0]:
                found[option.key, option.line] = option
    return tuple(found.values())
