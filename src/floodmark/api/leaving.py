"""Provides the verb that brings DStreams to Structured Streaming."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floodmark.api.arguments import (
    Storage,
    carrying_of,
    kept,
    require_spark_extra,
    script_options,
    spark_settings,
)
from floodmark.api.migrating import require_free

if TYPE_CHECKING:
    from floodmark.changes.apply import Carrying, Change


def leave_dstreams(
    path: str,
    new: str,
    *,
    app: str,
    with_file: str | None = None,
    trust: bool = False,
    operator: str = "0",
    stream: int | None = None,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    scratch: str | None = None,
    arguments: Iterable[str] = (),
    query: str | int | None = None,
    py_files: str | Iterable[str] = (),
    script_limit: float | None = None,
    execute: bool = False,
    wait: float | str | None = None,
    storage: Storage | None = None,
    out: str | None = None,
    carrying: Carrying | None = None,
) -> Change:
    """Make a first checkpoint for the code of `app`, with the state and the input of DStreams.

    `operator` gets the state: a number, or `number/variable` of transformWithState. `with_file` has
    a function `state(key, value)` that returns the new key and value. `trust` unpickles a state
    that is not plain data, which runs code of whoever wrote it.
    """
    require_spark_extra()
    from floodmark.changes.apply import begin_new_place
    from floodmark.changes.named_places import absolute
    from floodmark.engine.dstreams.leaving import Leaving, leaving_plan
    from floodmark.storage.files import open_files

    how = carrying_of(carrying, execute, wait, storage)
    asked = Leaving(
        app,
        str(path),
        operator,
        stream,
        with_file,
        trust,
        settings or {},
        spark_settings(conf, master),
        script_options(arguments, query, py_files, script_limit),
        scratch,
    )
    require_free(new, how)
    with contextlib.ExitStack() as stack:
        files = open_files(str(path), how.storage)
        made = leaving_plan(asked, files, absolute(new), how, stack)
        change = begin_new_place(made.plan, replace(how, rewriter=made.rewriter))
        return kept(change, how, out)
