"""Reads `spark-pipeline.yml`: the name of a declarative pipeline, and its storage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.checkpoint.text import shorten
from floodmark.errors import CannotRead, MalformedFile, WrongUse

_LARGEST = 1 << 20
_LARGEST_DEFINITION = 1 << 24
_MAGIC = re.compile(r"[*?\[]")
_GIVE = "Give the spark-pipeline.yml for `spark-pipelines run`."


@dataclass(frozen=True)
class PipelineSpec:
    path: Path
    name: str
    storage: str
    catalog: str | None = None
    database: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    includes: tuple[str, ...] = ()
    """The pipeline's definitions, relative to the specification: files, and folders with `/**`."""

    @property
    def folder(self) -> Path:
        """Return the definitions' folder; a link to the specification has its own folder."""
        return self.path.parent.resolve()


def is_pipeline_spec(path: str) -> bool:
    return path.endswith((".yml", ".yaml"))


def read_pipeline_spec(path: str) -> PipelineSpec:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise CannotRead(f"{path}: {error.strerror}", do="Check the path.") from None
    if len(data) > _LARGEST:
        raise MalformedFile(f"{path}: larger than a megabyte, so not a pipeline's specification")
    value = _parsed(path, data)
    name, storage = value.get("name"), value.get("storage")
    if not isinstance(name, str) or not isinstance(storage, str):
        missing = "name" if not isinstance(name, str) else "storage"
        raise MalformedFile(
            f"{path}: not a pipeline's specification, it has no {missing}", do=_GIVE
        )
    return PipelineSpec(
        Path(path),
        name,
        storage,
        _text(value.get("catalog")),
        _text(value.get("database", value.get("schema"))),
        _settings(path, value.get("configuration")),
        _includes(path, value.get("libraries")),
    )


def definition_files(spec: PipelineSpec) -> list[Path]:
    """Return the definitions, in Python and in SQL, in the order in which the runner reads them."""
    root = spec.folder
    found: list[Path] = []
    for include in spec.includes:
        pattern = f"{include}/*" if include.endswith("/**") else include
        try:  # Python 3.10 and 3.11 raise other errors for `.`
            with suppress(FileNotFoundError):  # from 3.14 on, glob keeps every error to itself
                (root / include.removesuffix("/**")).stat()
            found += [one for one in sorted(root.glob(pattern)) if one.is_file()]
        except (OSError, ValueError, IndexError, AttributeError) as error:
            raise MalformedFile(f"{spec.path}: {include!r} cannot be looked for: {error}") from None
    files = [
        one
        for one in dict.fromkeys(found)
        if one.suffix in (".py", ".sql") and "__pycache__" not in one.parts
    ]
    for one in files:
        _refuse_elsewhere(spec, one, root)
    return files


def _refuse_elsewhere(spec: PipelineSpec, file: Path, root: Path) -> None:
    """Refuse a link among the definitions, as a stranger may have written the specification."""
    there = file.resolve()
    if not there.is_relative_to(root):
        raise MalformedFile(
            f"{spec.path}: {file.relative_to(root)} is not below the specification's folder",
            f"A link leads to {there}, and links may lead anywhere.",
            "Put the file itself there.",
        )
    if there.stat().st_size > _LARGEST_DEFINITION:
        raise MalformedFile(f"{file}: larger than 16 megabytes, so no definitions of a pipeline")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _settings(path: str, value: object) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, dict) and all(isinstance(one, str) for one in (*value, *value.values())):
        return dict(value)
    raise MalformedFile(
        f"{path}: configuration is no list of settings",
        "Spark takes names and values that are text.",
        "Put numbers and true or false in quotes.",
    )


def _includes(path: str, value: object) -> tuple[str, ...]:
    try:
        found = tuple(one["glob"]["include"] for one in value or ())  # type: ignore[attr-defined]
    except (TypeError, KeyError):
        found = (None,)
    if not all(isinstance(one, str) and one.strip() for one in found):
        raise MalformedFile(
            f"{path}: libraries is no list of globs", do="Write `- glob: {include: FOLDER/**}`."
        )
    for one in found:
        if one.startswith("/") or ".." in one.split("/"):
            raise MalformedFile(f"{path}: {one!r} leads out of the specification's folder")
        if _MAGIC.search(one.removesuffix("/**")):
            raise MalformedFile(
                f"{path}: {shorten(one)!r} is no file, and no folder with /** after it",
                "Spark's runner takes no other glob (PIPELINE_SPEC_INVALID_GLOB_PATTERN).",
                "Write `- glob: {include: FOLDER/**}`.",
            )
    return found


def _why(error: Exception) -> str:
    """Return YAML's own words, with the line that they are about."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is not None and problem:
        return f"Line {mark.line + 1}: {shorten(str(problem))}."
    first = str(error).strip().splitlines()
    return shorten(first[0]) if first else ""


def _parsed(path: str, data: bytes) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        raise WrongUse(
            "PyYAML is not installed",
            "A pipeline's specification is YAML.",
            "Install it: pip install 'floodmark[pipelines]'",
        ) from None
    try:
        value = yaml.safe_load(data)
    except RecursionError:
        raise MalformedFile(f"{path}: no YAML", "It is nested too deeply.", _GIVE) from None
    except (yaml.YAMLError, ValueError) as error:
        raise MalformedFile(f"{path}: no YAML", _why(error), _GIVE) from None
    if not isinstance(value, dict):
        raise MalformedFile(f"{path}: no specification of a pipeline, it has no fields", do=_GIVE)
    return value
