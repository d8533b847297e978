"""Gives a notebook the names that it finds ready-made: `spark`, `sc`, `dbutils`, `display`."""

from __future__ import annotations

import sys
import types
from typing import Any

from floodmark.engine.app.patching import Patches
from floodmark.engine.app.script_calls import Watch
from floodmark.errors import WrongUse

_PLACEHOLDER = "floodmark-asks-no-vault"


class NotebookEnded(SystemExit):
    """Raised by dbutils.notebook.exit(): the notebook ends here without an error."""


class _Widgets:
    """Gives parameters: `name=value` from the script's arguments, else the code's default."""

    def __init__(self, watch: Watch, arguments: tuple[str, ...]) -> None:
        self._watch = watch
        self._given = dict(one.split("=", 1) for one in arguments if "=" in one)
        self._defaults: dict[str, str] = {}

    def text(self, name: str, defaultValue: str = "", *_more: Any) -> None:  # noqa: N803
        self._defaults[name] = str(defaultValue)

    dropdown = combobox = multiselect = text

    def get(self, name: str) -> str:
        value = self._given.get(name, self._defaults.get(name))
        if value is None:
            raise WrongUse(
                f"{self._watch.source.path} asks for the parameter {name}, which was not given",
                f"{self._watch.source.path}, line {self._watch.line()}: dbutils.widgets.get",
                f"Give it after two dashes: -- {name}=VALUE",
            )
        return value

    def getArgument(self, name: str, default: str | None = None) -> str:  # noqa: N802
        return self._given.get(name, self._defaults.get(name, default or ""))

    def remove(self, _name: str) -> None:
        pass

    def removeAll(self) -> None:  # noqa: N802
        pass


class _FileActs:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        def act(*given: Any, **_named: Any) -> bool:
            words = f"dbutils.fs.{name}({', '.join(map(str, given))})"
            if name in ("ls", "head", "mounts"):
                raise self._watch.refuse(words)
            self._watch.skip(words)
            return True

        return act


class _Secrets:
    """Gives placeholders to a judging verb, which needs no secrets; a run must not use them."""

    def __init__(self, watch: Watch, is_run: bool) -> None:
        self._watch, self._is_run = watch, is_run

    def get(self, *given: Any, **_named: Any) -> str:
        if self._is_run:
            raise self._watch.refuse(f"dbutils.secrets.get({', '.join(map(str, given))})")
        return _PLACEHOLDER

    def getBytes(self, *given: Any, **_named: Any) -> bytes:  # noqa: N802
        return self.get(*given).encode()


class _Notebook:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def exit(self, _value: Any = None) -> None:
        raise NotebookEnded(0)

    def run(self, path: str, *_given: Any, **_named: Any) -> str:
        self._watch.skip(f"dbutils.notebook.run({path})")
        return ""


class DBUtils:
    def __init__(self, watch: Watch, arguments: tuple[str, ...], is_run: bool = False) -> None:
        self.widgets = _Widgets(watch, arguments)
        self.fs = _FileActs(watch)
        self.secrets = _Secrets(watch, is_run)
        self.notebook = _Notebook(watch)
        self.library = types.SimpleNamespace(restartPython=lambda: None)
        self.jobs = types.SimpleNamespace(
            taskValues=types.SimpleNamespace(
                get=lambda *_, default=None, **__: default, set=lambda *_, **__: None
            )
        )


class _Shell:
    """Replaces IPython's get_ipython(): magics are skipped."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def system(self, command: str) -> None:
        self._watch.skip(f"!{command.strip()}")

    def run_line_magic(self, name: str, argument: str) -> None:
        if name in ("sql", "fs", "sh", "run", "pip"):
            self._watch.skip(f"%{name} {argument}".rstrip())


def notebook_names(
    watch: Watch, arguments: tuple[str, ...], is_run: bool = False
) -> dict[str, Any]:
    """Build the session and the names, as a notebook's first line may use the session.

    A run does not have Databricks' own services either: `watch` keeps what was left out.
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    return {
        "spark": spark,
        "sc": spark.sparkContext,
        "dbutils": DBUtils(watch, arguments, is_run),
        "display": lambda *_, **__: None,
        "displayHTML": lambda *_, **__: None,
        "get_ipython": lambda: _Shell(watch),
    }


def offer_dbutils(patches: Patches, watch: Watch, arguments: tuple[str, ...]) -> None:
    """Provide `from pyspark.dbutils import DBUtils`, which only Databricks has."""
    module = types.ModuleType("pyspark.dbutils")
    module.DBUtils = lambda *_: DBUtils(watch, arguments)  # type: ignore[attr-defined]
    if module.__name__ not in sys.modules:
        sys.modules[module.__name__] = module
        patches.callback(sys.modules.pop, module.__name__, None)
