"""Holds the parts of every declaration: a name, a checkpoint and a function with parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from floodmark.engine.pipelines.parameters import Parameter, settle
from floodmark.errors import WrongUse


@dataclass(frozen=True)
class Declaration:
    name: str
    checkpoint: str
    """A path or URL; `{name}` stands for the parameter of that name."""
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]

    def settle(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the value of every parameter."""
        return settle(self.name, self.parameters, given)

    def checkpoint_for(self, values: Mapping[str, Any]) -> str:
        try:
            return self.checkpoint.format_map(values)
        except (KeyError, IndexError, ValueError):
            known = ", ".join(sorted(values)) or "none"
            raise WrongUse(
                f"{self.name}: the checkpoint {self.checkpoint!r} names a parameter "
                "that the function does not have",
                f"Its parameters are: {known}.",
                "Write a literal brace twice: {{ and }}.",
            ) from None
