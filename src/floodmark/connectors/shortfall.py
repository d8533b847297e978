"""Says what a source no longer has of what a stream reads next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Trouble = TypeVar("Trouble", covariant=True)


@dataclass(frozen=True)
class Shortfall(Generic[Trouble]):
    trouble: Trouble
    words: str
