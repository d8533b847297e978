"""Reads a pipeline's parameters: keyword arguments of its function, for `--set NAME=VALUE`."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.errors import WrongUse

REQUIRED = inspect.Parameter.empty
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


@dataclass(frozen=True)
class Parameter:
    name: str
    type: type
    default: Any = REQUIRED


def declared(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters after `spark` and `start` in the function's signature."""
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) < 2 or any(one.kind is one.KEYWORD_ONLY for one in parameters[:2]):
        raise WrongUse(
            f"pipeline {function.__name__} has the parameters {_signature(parameters)}",
            "Floodmark calls a pipeline with the session and the stream's start position.",
            f"Write def {function.__name__}(spark, start): …",
        )
    return declared_after(function, 2)


def declared_after(function: Callable[..., Any], first: int) -> tuple[Parameter, ...]:
    """Return the parameters after the first ones, which floodmark itself gives."""
    parameters = list(inspect.signature(function).parameters.values())
    hints = _hints(function)
    return tuple(
        Parameter(one.name, _type_of(one, hints.get(one.name)), one.default)
        for one in parameters[first:]
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    )


def _signature(parameters: list[inspect.Parameter]) -> str:
    return "(" + ", ".join(str(one) for one in parameters) + ")"


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # an annotation may use a name that only a type checker imports
        return {}


def _type_of(parameter: inspect.Parameter, hint: Any) -> type:
    for candidate in (hint, *typing.get_args(hint)):
        if candidate in (bool, int, float, str):
            return typing.cast(type, candidate)
    default = parameter.default
    if default is not REQUIRED and type(default) in (bool, int, float):
        return type(default)
    return str


def settle(
    pipeline: str, parameters: tuple[Parameter, ...], given: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values for the call: given values, converted, and defaults for the rest."""
    missing = [one.name for one in parameters if one.default is REQUIRED and one.name not in given]
    if missing:
        raise WrongUse(
            f"pipeline {pipeline} needs a value for {', '.join(missing)}",
            "The parameter has no default.",
            " ".join(["Give", *(f"--set {name}=VALUE" for name in missing)]) + ".",
        )
    return {
        one.name: convert(one, given[one.name]) if one.name in given else one.default
        for one in parameters
    }


def convert(parameter: Parameter, text: str) -> Any:
    if parameter.type is bool:
        return _bool(parameter.name, text)
    try:
        return parameter.type(text)
    except ValueError:
        kind = "a whole number" if parameter.type is int else "a number"
        raise WrongUse(f"--set {parameter.name}: the value is not {kind}") from None


def _bool(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise WrongUse(f"--set {name}: the value is neither true nor false")


def refuse_unknown(known: Mapping[str, tuple[Parameter, ...]], given: Mapping[str, str]) -> None:
    """Refuse a name that no pipeline has, as it is a misspelling."""
    names = {one.name for parameters in known.values() for one in parameters}
    for name in given:
        if name not in names:
            raise WrongUse(
                f"--set {name}=…: no pipeline has a parameter {name!r}",
                f"Parameters: {', '.join(sorted(names)) or 'none'}.",
            )
