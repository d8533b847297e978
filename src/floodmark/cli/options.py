"""Defines the options that all verbs share."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from floodmark.cli.text import echo

_Function = TypeVar("_Function", bound=Callable[..., Any])
OF_CODE = ("settings", "conf", "master", "arguments", "query", "py_files", "script_limit")
"""The options that say how code is run, for pipelines and scripts."""


class TakesScript(click.Command):
    """A verb whose command line may end with a script's `arguments`, after two dashes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.params["arguments"] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENT]..."]


class Seconds(click.FloatRange):
    """A length of time that a clock can wait for: no nan, and at most ten years."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from floodmark.api.arguments import MOST_SECONDS

        found = super().convert(value, param, ctx)
        if not found <= MOST_SECONDS:
            self.fail(f"{value!r} is not a number of seconds up to {MOST_SECONDS:,.0f}", param, ctx)
        return found


def together(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    """Return a decorator that adds several options; the last one is shown first."""

    def add(function: _Function) -> _Function:
        for option in options:
            function = option(function)
        return function

    return add


def batch_range(_ctx: click.Context, _option: click.Parameter, value: str | None) -> Any:
    """Parse two batches, such as 5..7."""
    if value is None:
        return None
    first, dots, last = value.partition("..")
    # int() refuses thousands of digits.
    if not (dots and all(one.isdecimal() and len(one) < 20 for one in (first, last))):
        raise click.BadParameter(f"{value!r} is not two batches such as 5..7")
    return int(first), int(last)


def batches(help_text: str) -> Callable[[_Function], _Function]:
    return click.option("--batches", metavar="A..B", callback=batch_range, help=help_text)


def with_file(metavar: str, help_text: str) -> Callable[[_Function], _Function]:
    return click.option("--with", "with_file", metavar=metavar, help=help_text)


def trusting(help_text: str) -> Callable[[_Function], _Function]:
    return click.option("--trust", is_flag=True, help=help_text)


def _pairs(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise click.BadParameter("a value is not KEY=VALUE")
        pairs[key] = _typed(text)
    if pairs:
        from floodmark.secret_text import remember_all

        remember_all(pairs)
    return pairs


def _typed(text: str) -> Any:
    """Convert numbers, true, false and JSON objects; everything else stays text."""
    if text[:1] in "{[" or text in ("true", "false", "null") or text.isdecimal():
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def json_key(_ctx: click.Context, _option: click.Parameter, value: str | None) -> Any:
    """Parse a JSON object: a key of the state, or some of its fields."""
    if value is None:
        return None
    import json

    try:
        key = json.loads(value)
    except (ValueError, RecursionError):
        key = None
    if not isinstance(key, dict):
        raise click.BadParameter(f'{value!r} is not a JSON object such as {{"customerId": "c1"}}')
    return key


storage = click.option(
    "--storage",
    "storage",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_pairs,
    help="An fsspec option for the storage; repeatable.",
)


def limit(help_text: str, default: int | None = None) -> Callable[[_Function], _Function]:
    return click.option(
        "--limit",
        type=click.IntRange(1),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=help_text,
    )


def key(help_text: str) -> Callable[[_Function], _Function]:
    return click.option("--key", callback=json_key, metavar="JSON", help=help_text)


as_json = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on stdout, nothing else."
)


def _kind_pairs(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> Any:
    return _by_source(given, "ID=KIND, such as 0=eventhubs")


def _by_source(given: tuple[str, ...], form: str) -> dict[str, str]:
    for pair in given:
        if "=" not in pair:
            raise click.BadParameter(f"{pair!r}: give {form}.")
    return {source: said for source, _, said in (pair.partition("=") for pair in given)}


source_kinds = click.option(
    "--source-kind",
    "source_kinds",
    multiple=True,
    metavar="ID=KIND",
    callback=_kind_pairs,
    help="The kind of a source whose offsets do not show it: 0=eventhubs, 0=kafka, 0=python.",
)


def _name_pairs(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> Any:
    found = _by_source(given, "ID=NAME, such as 0=orders")
    if len(found) < len(given):
        raise click.BadParameter("a source is named twice; give each source one name.")
    return found


source_names = click.option(
    "--name",
    "name",
    multiple=True,
    metavar="ID=NAME",
    callback=_name_pairs,
    help="A source's name in NEW, by its id: 0=orders. Repeat it for every source.",
)


def _settings(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    if not values:
        return {}
    from floodmark.api.arguments import parse_settings

    return parse_settings(values)


settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_settings,
    help="A pipeline's parameter.",
)


old_ref = click.option(
    "--old-ref",
    metavar="REV",
    help="Take the code that made CP from this git revision.",
)


spark = together(
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark."),
    click.option("--master", metavar="URL", help="Spark's master: local[4], yarn, spark://…"),
)
"""Add --master and --conf."""


spark_log = click.option(
    "--spark-log",
    metavar="FILE",
    help="Spark's log; - is stderr. [default: only kept on failure]",
)


kafka = together(
    click.option(
        "--kafka-config",
        metavar="FILE",
        help="How to log in there: KEY=VALUE lines, as for --command-config of Kafka's own tools.",
    ),
    click.option(
        "--bootstrap-servers",
        "--kafka",
        "bootstrap_servers",
        metavar="HOST:PORT",
        help="Ask Kafka there.",
    ),
)
"""Add options for Kafka's address and login settings."""


def live_sources(timeout: float) -> Callable[[_Function], _Function]:
    """Add options for asking sources how far the stream is behind, and for how long."""
    return together(
        click.option(
            "--timeout",
            type=Seconds(min=0, min_open=True),
            default=timeout,
            show_default=True,
            metavar="SECONDS",
            help="How long a broker may take to answer.",
        ),
        click.option(
            "--sources",
            is_flag=True,
            help="Ask whatever the notes of the last start name, brokers too.",
        ),
        click.option(
            "--input", metavar="PATH", help="A file source's folder, if no notes name it."
        ),
        click.option(
            "--table",
            metavar="PATH|NAME",
            help="The Delta or Iceberg table, if no notes name it: its folder, or an Iceberg "
            "table's CATALOG.NAMESPACE.TABLE.",
        ),
        kafka,
    )


script = together(
    click.option(
        "--script-limit",
        type=Seconds(min=1),
        default=120.0,
        show_default=True,
        metavar="SECONDS",
        help="How long a script may run before it starts a query.",
    ),
    click.option(
        "--py-files",
        metavar="FILE,…",
        callback=lambda _ctx, _option, value: value or (),
        help="Modules of the script, as for spark-submit.",
    ),
    click.option("--query", metavar="NAME|N", help="Which query of the script, if it has several."),
)
"""Add the options for running a script; the command has the class TakesScript."""


proof = together(as_json, storage, spark, script, spark_log)
"""Add the options of verbs that run code over past batches."""


def only_the_document(is_document: bool) -> contextlib.AbstractContextManager[Any]:
    """Keep stdout for the document: the application's output goes to stderr."""
    return contextlib.redirect_stdout(sys.stderr) if is_document else contextlib.nullcontext()


def show_json(value: Any) -> None:
    from floodmark import wire

    # Indented for people; a program gets one line, which is made many times faster.
    indent = 2 if sys.stdout.isatty() else None
    text = wire.dumps(value, indent)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        # The terminal does not use UTF-8.
        import json

        text = json.dumps(wire.to_wire(value), indent=indent)
    echo(text)
