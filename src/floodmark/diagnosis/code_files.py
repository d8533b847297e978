"""Finds and reads the Python files, notebooks and pipelines' SQL files that lint checks."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from floodmark.errors import CannotRead, MalformedFile
from floodmark.storage.files import unreadable
from floodmark.storage.pipeline_spec import (
    definition_files,
    is_pipeline_spec,
    read_pipeline_spec,
)
from floodmark.storage.user_code import code_bytes

SUFFIXES = (".py", ".ipynb")
# Folders with other people's code, or without code.
_PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})


def read_sources(paths: Iterable[str]) -> Iterator[tuple[str, str | MalformedFile]]:
    """Yield (path, its text); for a file that is not text, the reason instead."""
    for path in paths:
        for file in _files(Path(path)):
            yield str(file), _text(file)


def _files(path: Path) -> Iterator[Path]:
    try:
        path.stat()
    except OSError as error:
        raise unreadable(str(path), error) from None
    if is_pipeline_spec(str(path)):
        definitions = definition_files(read_pipeline_spec(str(path)))
        if not definitions:
            raise CannotRead(
                f"{path}: the specification names no definitions that exist",
                "No .py or .sql file matches the globs of its libraries.",
                "Write `- glob: {include: FOLDER/**}`; the path begins at the specification's "
                "folder.",
            )
        yield from definitions
        return
    if not path.is_dir():
        yield path
        return
    try:
        inside = sorted(path.iterdir())
    except OSError as error:
        raise unreadable(str(path), error) from None
    for item in inside:
        if item.is_dir():
            # A linked folder is elsewhere, or leads back up: it is linted in its own place.
            if item.is_symlink():
                continue
            if not item.name.startswith(".") and item.name not in _PASSED_OVER:
                yield from _files(item)
        elif item.suffix in SUFFIXES and item.is_file():
            yield item


def _text(path: Path) -> str | MalformedFile:
    try:
        data = code_bytes(path)
    except OSError as error:
        raise unreadable(str(path), error) from None
    try:
        return _decode(data, path.suffix == ".ipynb")
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return MalformedFile("the file is not text in the encoding that it names")


def _decode(data: bytes, is_notebook: bool) -> str:
    if is_notebook:
        return data.decode("utf-8-sig")
    encoding = "utf-8"
    head = data[:400]
    if b"coding" in head or head.startswith(b"\xef\xbb\xbf"):
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    # Python itself reads every line end as a line feed.
    return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
