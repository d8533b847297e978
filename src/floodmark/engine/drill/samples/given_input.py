"""Reads what --input names: a folder, a file of lines, or a Kafka topic."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from floodmark.engine.drill.samples.input_sample import InputSample
from floodmark.engine.drill.samples.sampled_sources import write_portions
from floodmark.errors import WrongUse

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MOST_BYTES = 64 * 1024 * 1024


def inputs_of(given: Iterable[str], shared: Path) -> tuple[InputSample, ...]:
    """Return the samples; lines of files are cut into portions below `shared`."""
    found = tuple(_input(one, shared / f"lines-{number}") for number, one in enumerate(given))
    if not found:
        raise WrongUse(
            "a drill needs a sample to read",
            do="Give --input DIR, --input FILE.jsonl or --input TOPIC.",
        )
    return found


def _input(given: str, portions: Path) -> InputSample:
    if given.startswith("kafka://"):
        told = urlsplit(given)
        topic = told.path.strip("/")
        if not told.netloc or not _TOPIC.fullmatch(topic):
            raise WrongUse(f"--input {given}", do="Write it as kafka://HOST:PORT/TOPIC.")
        return InputSample("topic", topic, told.netloc)
    path = Path(given.removeprefix("file://")).expanduser().absolute()
    if path.is_dir():
        if not _has_files(path):
            raise WrongUse(
                f"--input {given}: the folder has no files",
                "Without rows, a crash cannot lose or repeat anything.",
                "Put some files of the source's format there.",
            )
        return InputSample("folder", str(path))
    if path.is_file():
        write_portions(_lines(given, path), portions)
        return InputSample("portions", str(portions))
    if "/" in given or "." in Path(given).suffix or not _TOPIC.fullmatch(given):
        raise WrongUse(
            f"--input {given}: there is no such folder or file",
            do="Give a folder, a file of JSON lines, or a Kafka topic: kafka://HOST:PORT/TOPIC.",
        )
    return InputSample("topic", given)


def _has_files(folder: Path) -> bool:
    return any(
        one.is_file() and not one.name.startswith((".", "_")) and one.stat().st_size
        for one in folder.rglob("*")
    )


def _lines(given: str, path: Path) -> list[str]:
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise WrongUse(
            f"--input {given} has {size:,} bytes",
            f"The drill reads a sample many times; the limit is {_MOST_BYTES:,} bytes.",
            f"Take a part of it: head -n 1000 {given} > sample.jsonl",
        )
    try:
        lines = [one for one in path.read_text(encoding="utf-8").split("\n") if one.strip()]
    except UnicodeDecodeError:
        raise WrongUse(
            f"--input {given} is not text", do="Give a file with one JSON row a line."
        ) from None
    if not lines:
        raise WrongUse(
            f"--input {given} is empty",
            "Without rows, a crash cannot lose or repeat anything.",
            "Give a file with one row a line.",
        )
    return lines
