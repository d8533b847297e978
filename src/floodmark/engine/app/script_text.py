"""Reads the text of a script or notebook for compiling, with the lines of its own file."""

from __future__ import annotations

import ast
import hashlib
import types
from dataclasses import dataclass
from pathlib import Path

from floodmark.errors import WrongUse
from floodmark.rules.code.notebook import to_python
from floodmark.storage.user_code import code_bytes

_DATABRICKS = "# Databricks notebook source"


@dataclass(frozen=True)
class ScriptText:
    path: Path
    text: str
    fingerprint: str
    """SHA-256 of the file."""
    lines: tuple[int, ...] = ()
    """The line of the .ipynb file for each line of `text`."""
    is_notebook: bool = False
    """True where the code finds `spark`, `dbutils` and `display` ready-made."""

    @property
    def file(self) -> str:
        """Return the path as Python writes it into frames."""
        return str(self.path.absolute())

    def line(self, number: int | None) -> int | None:
        if number is None or not self.lines:
            return number
        return self.lines[min(number, len(self.lines)) - 1]

    def compiled(self) -> types.CodeType:
        try:
            return compile(self.text, self.file, "exec", dont_inherit=True)
        except SyntaxError as error:
            line = self.line(error.lineno)
            raise WrongUse(
                f"{self.path} is not valid Python for {_python()}: {error.msg}",
                f"{self.path}, line {line}: {(error.text or '').strip()}",
                "Correct it; `python` alone reports the same.",
            ) from error
        except ValueError as error:
            raise WrongUse(f"{self.path} is not a Python file: {error}") from error

    def declares_pipelines(self) -> bool:
        """Whether the file uses floodmark's @pipeline: then its functions are called by name."""
        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return False
        return any(_names(node, "pipeline") for node in ast.walk(tree))

    def declares_dstreams(self) -> bool:
        """Whether the file uses floodmark's @dstream."""
        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return False
        return any(_names(node, "dstream") for node in ast.walk(tree))


def read_source(path: Path) -> ScriptText:
    try:
        data = code_bytes(path)
    except (OSError, ValueError):
        raise WrongUse(
            f"{path}: no such application file",
            do="Give the path of a Python script or notebook, or FILE.py:PIPELINE for one of its "
            "pipelines.",
        ) from None
    fingerprint = hashlib.sha256(data).hexdigest()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WrongUse(f"{path} is not UTF-8 text: {error.reason}") from None
    if path.suffix == ".ipynb":
        try:
            python, lines = to_python(text)
        except (ValueError, RecursionError) as error:
            raise WrongUse(f"{path} is not a notebook: {error}") from None
        return ScriptText(path, python, fingerprint, tuple(lines), is_notebook=True)
    if path.suffix != ".py":
        raise WrongUse(f"{path}: not a Python file", do="Its name must end in .py or .ipynb.")
    return ScriptText(path, text, fingerprint, is_notebook=text.startswith(_DATABRICKS))


def _names(node: ast.AST, decorator: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        of_us = node.level == 0 and (node.module or "").partition(".")[0] == "floodmark"
        return of_us and any(name.name == decorator for name in node.names)
    return (
        isinstance(node, ast.Attribute)
        and node.attr == decorator
        and isinstance(node.value, ast.Name)
        and node.value.id == "floodmark"
    )


def _python() -> str:
    import sys

    return f"this version ({sys.version_info.major}.{sys.version_info.minor})"
