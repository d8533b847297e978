"""Finds the DStreams of an application file."""

from __future__ import annotations

import ast

from floodmark.engine.app.script_text import ScriptText
from floodmark.engine.dstreams.declaration import DStreamPipeline
from floodmark.engine.pipelines.application import import_application, split_target
from floodmark.errors import WrongUse


def is_dstream(source: ScriptText, target: str) -> bool:
    """Whether the target is DStreams; a file with pipelines as well needs a name."""
    if not source.declares_dstreams():
        return False
    if not source.declares_pipelines():
        return True
    _, name = split_target(target)
    if name is None:
        raise WrongUse(
            f"{source.path} has pipelines and DStreams",
            "They do not run in one process.",
            f"Name the one to run: {source.path}:NAME",
        )
    tree = ast.parse(source.text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(
        node.name == name and "dstream" in ast.unparse(decorator)
        for node in functions
        for decorator in node.decorator_list
    )


def load_dstream(target: str) -> DStreamPipeline:
    """Load the only dstream of `APP.py`, or the one that `APP.py:NAME` names."""
    path, name = split_target(target)
    module = import_application(path)
    found = {one.name: one for one in vars(module).values() if isinstance(one, DStreamPipeline)}
    if name is not None and name in found:
        return found[name]
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    known = ", ".join(found) or "none"
    if name is not None:
        raise WrongUse(
            f"{path} has no dstream {name!r}",
            f"It has: {known}.",
            f"Name one of its dstreams: {path}:{next(iter(found), 'NAME')}",
        )
    raise WrongUse(
        f"{path} has {len(found)} dstreams: {known}",
        "One JVM runs one StreamingContext.",
        f"Name the one to run: {path}:{next(iter(found), 'NAME')}",
    )
