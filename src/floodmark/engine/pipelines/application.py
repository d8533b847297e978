"""Loads an application by its path: a Python file that declares pipelines."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from floodmark.engine.app.surroundings import APPLICATION_MODULE, share_with_workers
from floodmark.engine.pipelines.decorator import Pipeline
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.storage.user_code import code_bytes


@dataclass(frozen=True)
class Application:
    path: Path
    fingerprint: str
    """SHA-256 of the file, which shows whether a later start ran the same code."""
    pipelines: tuple[Pipeline, ...]


def application_file(target: str) -> Path:
    """Return the file of `APP.py` or of `APP.py:NAME`."""
    return split_target(target)[0]


def load_application(target: str) -> Application:
    """Load `APP.py` with all its pipelines, or `APP.py:NAME` with one of them."""
    path, name = split_target(target)
    try:
        source = code_bytes(path)
    except (OSError, ValueError):
        raise WrongUse(
            f"{path}: no such application file",
            do="Give the path of a Python file, or FILE.py:PIPELINE for one of its pipelines.",
        ) from None
    pipelines = _pipelines(import_application(path), path)
    return Application(path, hashlib.sha256(source).hexdigest(), _chosen(pipelines, name, path))


def split_target(target: str) -> tuple[Path, str | None]:
    """Return the file, and the pipeline or query that is named after a colon."""
    path, colon, name = target.rpartition(":")
    # C:\sales.py has a colon but names no pipeline; so does a file with a colon in its name.
    if colon and path.endswith((".py", ".ipynb")):
        return Path(path), name or None
    return Path(target), None


def import_application(path: Path) -> ModuleType:
    # The digest distinguishes two applications with the same file name.
    name = APPLICATION_MODULE + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WrongUse(f"{path}: not a Python file", do="Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickle look it up there
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # so that the application can import its neighbours
        sys.path.insert(0, folder)
        share_with_workers((folder,))
    _pickle_by_value(module)
    try:
        spec.loader.exec_module(module)
    except (FloodmarkError, KeyboardInterrupt):
        sys.modules.pop(name, None)
        raise
    except BaseException as error:  # also SystemExit: a file that calls sys.exit() fails here
        sys.modules.pop(name, None)
        raise _failed_import(path, error) from error
    return module


def _pickle_by_value(module: ModuleType) -> None:
    """Let Spark pickle the module by value, as its workers cannot import the application by name.

    This happens before the module runs, as it may pickle its functions at once, for a broadcast.
    """
    try:
        from pyspark import cloudpickle
    except ImportError:  # the application says so itself, in its own words
        return
    cloudpickle.register_pickle_by_value(module)


def _failed_import(path: Path, error: BaseException) -> WrongUse:
    if isinstance(error, SyntaxError):
        where = f"{error.filename}, line {error.lineno}: {(error.text or '').strip()}"
    else:
        where = where_in(path, error)
    do = "Run it with `python` alone to see the whole traceback, or set FLOODMARK_DEBUG=1."
    if isinstance(error, ModuleNotFoundError):
        do = f"Install it beside floodmark: pip install {(error.name or '').partition('.')[0]}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("pyspark"):
        do = "Install it: pip install 'floodmark[spark]'"
    message = str(error).splitlines()[0] if str(error) else ""
    return WrongUse(
        f"{path} fails on import: {type(error).__name__}: {message}".rstrip(": "), where, do
    )


def where_in(path: Path | str | None, error: BaseException) -> str:
    """Return the application's line that led to an error; if there is none, the innermost line."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    # Python writes a file's absolute path into its frames, however the user named the file.
    own = str(Path(path).absolute()) if path is not None else None
    frame = next((frame for frame in reversed(frames) if frame.filename == own), None)
    frame = frame or (frames[-1] if frames else None)
    return f"{frame.filename}, line {frame.lineno}: {frame.line}" if frame else ""


def _pipelines(module: ModuleType, path: Path) -> tuple[Pipeline, ...]:
    found: dict[str, Pipeline] = {}
    seen: set[int] = set()
    for value in vars(module).values():
        if not isinstance(value, Pipeline) or id(value) in seen:
            continue
        seen.add(id(value))
        if value.name in found:
            raise WrongUse(
                f"{path}: two pipelines are named {value.name!r}",
                "The name distinguishes them on the command line and in the notes.",
                "Give one of them another name: @pipeline(checkpoint=…, name=…).",
            )
        found[value.name] = value
    if not found:
        raise WrongUse(
            f"{path} has no pipeline",
            "A pipeline is a function under @pipeline(checkpoint=…) that returns a "
            "DataStreamWriter.",
            "Decorate a function: from floodmark import pipeline.",
        )
    return tuple(found.values())


def _chosen(pipelines: tuple[Pipeline, ...], name: str | None, path: Path) -> tuple[Pipeline, ...]:
    if name is None:
        return pipelines
    chosen = tuple(one for one in pipelines if one.name == name)
    if not chosen:
        raise WrongUse(
            f"{path} has no pipeline {name!r}",
            f"It has: {', '.join(one.name for one in pipelines)}.",
            f"Name one of its pipelines: {path}:{pipelines[0].name}",
        )
    return chosen
