"""Renders Prometheus' text format: families of samples, escaped, without duplicate series. Pure.
Pure.

Names and values come from checkpoints, which anybody may have written: a label is one line of at
most 200 characters, and a long one keeps a digest of the whole, so that two do not become one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from floodmark.visible import one_line

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LONGEST = 200
_DIGEST = 12


@dataclass(frozen=True)
class MetricSample:
    value: float | None
    """None if the value is not known; then there is no such series."""
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""
    """`_bucket`, `_sum` or `_count` of a histogram."""


@dataclass(frozen=True)
class MetricFamily:
    name: str
    kind: str
    """gauge, counter or histogram"""
    help: str
    samples: tuple[MetricSample, ...]


def render(families: Iterable[MetricFamily]) -> str:
    """Return the text of a scrape. Families of one name, from many checkpoints, become one."""
    merged: dict[str, tuple[MetricFamily, list[MetricSample]]] = {}
    for family in families:
        merged.setdefault(family.name, (family, []))[1].extend(family.samples)
    found = (line for family, samples in merged.values() for line in _lines(family, samples))
    return "".join(line + "\n" for line in found)


def _lines(family: MetricFamily, samples: Iterable[MetricSample]) -> Iterator[str]:
    series: dict[str, str] = {}
    for sample in samples:
        if sample.value is not None:
            name = f"{family.name}{sample.suffix}{_labels(sample.labels)}"
            series.setdefault(name, _number(sample.value))
    if series:
        yield f"# HELP {family.name} {_help(family.help)}"
        yield f"# TYPE {family.name} {family.kind}"
        yield from (f"{name} {value}" for name, value in series.items())


def _labels(labels: Mapping[str, str]) -> str:
    said = [f'{name}="{_label(value)}"' for name, value in labels.items()]
    return f"{{{','.join(said)}}}" if said else ""


@lru_cache(10_000)
def _label(value: str) -> str:
    """Return an escaped label; it is cached, because the same values occur in many series."""
    return _escaped(bounded(value))


def bounded(text: str) -> str:
    """Return one short line; a long text becomes its beginning and a digest of the whole."""
    line = one_line(str(text)).encode("utf-8", "backslashreplace").decode()
    if len(line) <= _LONGEST:
        return line
    digest = hashlib.sha256(line.encode()).hexdigest()[:_DIGEST]
    return f"{line[: _LONGEST - _DIGEST - 1]}…{digest}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: float) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
