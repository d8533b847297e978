"""Finds an Iceberg table: in a folder, or by name in a catalog that pyiceberg knows."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from floodmark.checkpoint.relative_path import RelativePath, shown
from floodmark.checkpoint.text import shorten
from floodmark.connectors.iceberg.table_metadata import (
    FOLDER,
    IcebergTable,
    newest_names,
    parse_table_metadata,
)
from floodmark.errors import CannotRead, FloodmarkError, NoAnswer
from floodmark.secret_text import redacted
from floodmark.storage.files import Files

Found = tuple[IcebergTable, list[str]]
"""The table, and notes on what is not sure about it."""
TIMEOUT = 15.0
_NAME = re.compile(r"[^/\\:.\s]+(?:\.[^/\\:.\s]+)+")
_DEFAULT = "default"
_UNSET = "URI missing"


def find_table(
    place: str | None, opened: Callable[[str], Files], timeout: float = TIMEOUT
) -> Found:
    """Return the table at a place: a folder that holds `metadata/`, or
    `catalog.namespace.table`.
    """
    if not place:
        raise CannotRead(
            "The Iceberg table was not asked: its location is not known.",
            do="Give the folder that holds its metadata/ with --table PATH, or a table in a "
            "catalog that pyiceberg is set up for with --table CATALOG.NAMESPACE.TABLE.",
        )
    if is_name(place):
        return _from_catalog(place, timeout), []
    return _from_folder(opened(place), place)


def is_name(place: str) -> bool:
    """Whether a place is a name that only a catalog resolves; write a folder of that form as
    `./a.b`.
    """
    return _NAME.fullmatch(place) is not None


def _from_folder(files: Files, place: str) -> Found:
    names = newest_names(files.level(FOLDER).files)
    if not names:
        raise NoAnswer(
            f"{place} is not an Iceberg table: it has no {FOLDER}/*.metadata.json. The table was "
            "dropped, or is elsewhere."
        )
    found = [
        parse_table_metadata(name, files.read(RelativePath(f"{FOLDER}/{name}"))) for name in names
    ]
    notes = []
    if len(names) > 1:
        notes.append(
            f"{len(names)} metadata files have the highest number. floodmark read the newer one; "
            "only the catalog knows which one counts."
        )
    return max(found, key=lambda one: one[0])[1], notes


def _from_catalog(name: str, timeout: float) -> IcebergTable:
    try:
        import pyiceberg.catalog  # noqa: F401
    except ImportError:
        raise CannotRead(
            f"The Iceberg table {name} was not asked: only a catalog knows its location, and "
            "pyiceberg is not installed.",
            do='Install it with: pip install "floodmark[iceberg]". Or give the folder that holds '
            "the table's metadata/ instead of its name.",
        ) from None
    catalog, _, table = name.partition(".")
    if "." not in table:
        catalog, table = _DEFAULT, name
    text = _within(timeout, lambda: _metadata_text(catalog, table), f"The catalog {catalog}")
    return parse_table_metadata(f"{name} in the catalog {catalog}", text.encode())[1]


def _metadata_text(catalog: str, table: str) -> str:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    variable = f"PYICEBERG_CATALOG__{catalog.upper()}__URI"
    set_up = (
        f"Set the catalog up for pyiceberg, in .pyiceberg.yaml or in {variable}. Or give the "
        "folder that holds the table's metadata/ instead of its name."
    )
    try:
        opened = load_catalog(catalog)
    except FloodmarkError:
        raise
    except ValueError as error:  # the message names no catalog if an address is missing
        words = "pyiceberg is not set up for it" if _UNSET in str(error) else _words(error)
        raise NoAnswer(f"The catalog {catalog} cannot be asked: {words}.", do=set_up) from None
    except Exception as error:  # each kind of catalog has a client with its own errors
        raise NoAnswer(
            f"The catalog {catalog} cannot be asked: {_words(error)}.", do=set_up
        ) from None
    try:
        return str(opened.load_table(table).metadata.model_dump_json())
    except (NoSuchTableError, NoSuchNamespaceError):
        raise NoAnswer(
            f"The catalog {catalog} has no table {table}: it was dropped or renamed.",
            do="Give the table that the stream uses: CATALOG.NAMESPACE.TABLE.",
        ) from None
    except Exception as error:
        raise NoAnswer(
            f"The catalog {catalog} does not give the table {table}: {_words(error)}.", do=set_up
        ) from None


def _within(seconds: float, ask: Callable[[], str], who: str) -> str:
    """Ask in a thread with a time limit, because clients of catalogs wait for ever.

    A daemon thread does not keep Python running.
    """
    answers: list[str] = []
    troubles: list[FloodmarkError] = []

    def run() -> None:
        try:
            answers.append(ask())
        except FloodmarkError as error:
            troubles.append(error)

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(seconds)
    if troubles:
        raise troubles[0]
    if not answers:
        raise NoAnswer(
            f"{who} did not answer within {seconds:g} s.",
            do="Check that it runs, or give the folder that holds the table's metadata/ instead of "
            "its name.",
        )
    return answers[0]


def _words(error: Exception) -> str:
    said = str(error).strip().partition("\n")[0] or type(error).__name__
    return shown(shorten(redacted(said), 200)).rstrip(".")
