"""Runs `floodmark`: finds the verb, runs it, and turns errors into text and an exit status."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from contextlib import AbstractContextManager, nullcontext

import click

from floodmark import __version__
from floodmark.cli.text import echo, is_terminal
from floodmark.errors import CannotRead, FloodmarkError, WouldLose
from floodmark.limits import current, raise_limits
from floodmark.visible import one_line

# verb → (module, summary). The module is imported when the verb is used.
VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "Reading": {
        "inspect": ("inspect", "Show where a stream stands, from its checkpoint."),
        "batches": ("batches", "List the batches and what became of each."),
        "offsets": ("offsets", "Print a batch's offsets, ready for a new stream."),
        "files": ("files", "List which input files each batch took."),
        "state": ("state", "Look inside the state: rows, one key, sizes, changes."),
        "diff": ("diff", "Compare two checkpoints, or two batches of one."),
        "scan": ("scan", "Find every checkpoint below a folder."),
        "lag": ("lag", "Say how far a stream is behind its sources."),
        "watch": ("watch", "Watch a stream live in the terminal, with small plots."),
        "serve": ("serve", "Show every stream below a folder on a page, live."),
    },
    "Running": {
        "run": ("run", "Run the pipelines of an application, recoverably."),
        "deploy": ("deploy", "Write a systemd unit, a Kubernetes manifest or a YARN service."),
        "demo": ("demo", "See a stream killed and brought back, on this machine."),
    },
    "Judging": {
        "check": ("check", "Say whether changed code can go on with a checkpoint."),
        "outline": ("outline", "Write down what a checkpoint is, for checks without it."),
        "compare": ("compare", "Run old and new code over past batches, and compare their rows."),
        "replay": ("replay", "Run a past batch again, on a fork: rows, state, time."),
        "drill": ("drill", "Kill a pipeline's driver at each point of a batch: what is lost?"),
        "doctor": ("doctor", "Say whether a checkpoint is sound, and what to do if not."),
        "lint": ("lint", "Say what will hurt in streaming code, without running it."),
        "explain": ("explain", "Explain a rule: what, why, what to do instead."),
    },
    "Changing": {
        "upgrade": ("upgrade", "Make a new checkpoint that begins right after the last commit."),
        "rewind": ("rewind", "Take a stream back to an earlier batch, time or offsets."),
        "copy": ("copy", "Copy a checkpoint to another place, with its paths corrected."),
        "backup": ("backup", "Keep a snapshot of a checkpoint, also while its query runs."),
        "restore": ("restore", "Bring a checkpoint back from a snapshot."),
        "migrate": ("migrate", "Make a checkpoint for changed code, with the state carried over."),
        "bootstrap": ("bootstrap", "Make a first checkpoint with state from a table."),
        "leave-dstreams": (
            "leave_dstreams",
            "Bring DStreams over to Structured Streaming, with state and input.",
        ),
        "repartition": ("repartition", "Spread the state over another number of partitions."),
        "convert": ("convert", "Keep the state in RocksDB instead of HDFS files, or back."),
        "compact": ("compact", "Remove files that nothing needs any more."),
        "repair": ("repair", "Repair what doctor found, with the smallest change."),
        "apply": ("apply", "Execute a saved plan."),
        "undo": ("undo", "Take back the last change of a checkpoint."),
        "forget": ("forget", "Remove what changes have kept."),
    },
}
_INTERNAL_ERROR = 70
_COMPLETION = "_FLOODMARK_COMPLETE"
"""The variable that the shell's script sets when it asks what may follow."""
_LIVE = {"", "demo", "run", "serve", "watch"}
"""Verbs that themselves show their progress."""


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb for group in VERBS.values() for verb in group]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        for group in VERBS.values():
            if name in group:
                module = importlib.import_module(f"floodmark.cli.{group[name][0]}")
                command: click.Command = module.command
                if _COMPLETION in os.environ:
                    from floodmark.cli.completion import completed

                    return completed(command)
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.list_commands(ctx), 1)
            if not close:
                raise
            words = f"{error.message} Did you mean {close[0]!r}?"
            raise click.UsageError(words, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Do not import the verbs, so that --help is as fast as the rest.
        for title, group in VERBS.items():
            with formatter.section(title):
                formatter.write_dl([(verb, words) for verb, (_, words) in group.items()])


def _show_completion(context: click.Context, _option: click.Parameter, shell: str | None) -> None:
    if shell is not None and not context.resilient_parsing:
        from floodmark.cli.completion import show

        show(context, shell, _COMPLETION)


@click.command(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="CP is a checkpoint: its folder, or a URL such as s3://bucket/folder. Reading never "
    "starts Spark and never changes anything; a changing verb prints its plan, and changes nothing "
    "without --execute. Every verb takes --help.",
)
@click.option(
    "--raise-limit",
    "limits",
    multiple=True,
    metavar="KIND=SIZE",
    help="Read larger files of a kind than is usual, say journal=1G or memory=20G; may be given "
    "again. docs/security.md lists the kinds.",
)
@click.option(
    "--completion",
    type=click.Choice(("bash", "zsh", "fish")),
    is_eager=True,
    expose_value=False,
    callback=_show_completion,
    help="Print the script that completes commands in your shell.",
)
@click.version_option(__version__, prog_name="floodmark", message="%(prog)s %(version)s")
def floodmark(limits: tuple[str, ...]) -> None:
    """Keep Apache Spark streams going: see where a stream stands, run it recoverably, judge
    changed code before a restart, and move a stream without losing a record or its state.
    """
    raise_limits(limits)
    current()  # report a wrong limit at once, not at the first large file


def main() -> None:
    _fill_closed_descriptors()
    sys.exit(run(sys.argv[1:]))


def _fill_closed_descriptors() -> None:
    """Open closed descriptors, as for `2>&-`: a later file must not become standard error."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # it gets the lowest free descriptor: this one
            os.set_inheritable(opened, True)
    sys.stdout = sys.stdout or io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(2, "w", closefd=False))


def run(arguments: list[str]) -> int:
    """Run a command line, and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot show must not hide the rest.
            stream.reconfigure(errors="backslashreplace")
    try:
        with _waiting(_verb(arguments)):
            result = floodmark.main(
                arguments, prog_name="floodmark", standalone_mode=False, obj=tuple(arguments)
            )
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        usage = io.StringIO()
        error.show(usage)
        echo(_public(usage.getvalue().rstrip()), err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        echo("floodmark: interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has stopped reading.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except FloodmarkError as error:
        if _debugging():
            raise
        show_error(error, _checkpoint_of(arguments))
        _show_accepting(error, arguments)
        return error.status
    except MemoryError:
        if _debugging():
            raise
        echo(
            "floodmark: there is not enough memory for this\n"
            "  A file is larger than this process can hold, or this machine has too little free "
            "memory.\n"
            "  Run it where there is more memory, or read less at once: one batch, one operator.",
            err=True,
        )
        return CannotRead.status
    except Exception as error:
        if _debugging():
            raise
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _full_disk(error)
        words = one_line(_public(f"{type(error).__name__}: {error}"))
        echo(
            f"floodmark: an error that should not happen: {words}\n"
            "  It is a bug. Run it again with FLOODMARK_DEBUG=1 and report what it prints.",
            err=True,
        )
        return _INTERNAL_ERROR


def _full_disk(error: OSError) -> int:
    """Report a full disk for floodmark's own files; storage reports its own."""
    import tempfile

    where = error.filename or tempfile.gettempdir()
    echo(
        f"floodmark: the disk is full at {where}\n"
        "  Unpacked files need space in the folder for temporary files.\n"
        "  Free space there, or name another folder with TMPDIR, and repeat the command.",
        err=True,
    )
    return CannotRead.status


def _waiting(verb: str) -> AbstractContextManager[object]:
    """Return a sign of life, if somebody can see it and the verb shows none itself."""
    if verb in _LIVE or not is_terminal():
        return nullcontext()
    from floodmark.cli.waiting import Waiting

    return Waiting(verb)


def _verb(arguments: list[str]) -> str:
    return next((one for one in arguments if not one.startswith("-")), "")


def show_error(error: FloodmarkError, checkpoint: str | None = None) -> None:
    """Print an error; CP in its commands becomes the checkpoint that the user has named."""
    why, do = error.why, error.do
    if checkpoint is not None:
        from floodmark.addresses import public_url
        from floodmark.rules.pasteable import with_places

        why, do = (with_places(part, {"CP": public_url(checkpoint)}) for part in (why, do))
    # A secret is hidden before a line break can lie in it.
    from floodmark.cli.text.prose import prose  # most commands end without an error

    lines = prose(_public(f"{type(error).__name__}: {one_line(error.what)}"), err=True)
    for part in (why, do):
        lines += [one for line in _public(part).splitlines() for one in prose(line, "  ", err=True)]
    echo("\n".join(lines), err=True)


def _checkpoint_of(arguments: list[str]) -> str | None:
    """Return the path that CP means in the command; None if it may be a second path."""
    verbs = {verb for group in VERBS.values() for verb in group}
    at = next((at for at, one in enumerate(arguments) if one in verbs), None)
    if at is None:
        return None
    group = click.Context(floodmark)
    command = floodmark.get_command(group, arguments[at])
    if command is None:
        return None
    rest = arguments[at + 1 :]
    try:
        asked = command.make_context(arguments[at], rest, group, resilient_parsing=True)
    except click.ClickException:
        return None
    named = {one.metavar: asked.params.get(one.name or "") for one in command.params}
    checkpoint = named.get("CP") or _no_outline(named.get("CP|OUTLINE"))
    is_alone = named.get("[OTHER]") is None and named.get("REPO") is None
    return checkpoint if isinstance(checkpoint, str) and is_alone else None


def _no_outline(named: object) -> object:
    """Return the path, unless it is an outline: no command about the checkpoint takes that."""
    from pathlib import Path

    return None if isinstance(named, str) and Path(named).is_file() else named


def _show_accepting(error: FloodmarkError, arguments: list[str]) -> None:
    """Print the same command with the names that it has to accept, to be pasted."""
    if isinstance(error, WouldLose) and error.accept:
        from floodmark.cli.again import again

        named = [part for name in error.accept for part in ("--accept", name)]
        echo(f"  {again(arguments, *named)}", err=True)


def _public(words: str) -> str:
    """Return the text without secrets, also those of the environment."""
    from floodmark.secret_text import redacted, remember_environment

    remember_environment(os.environ)
    return redacted(words)


def _debugging() -> bool:
    return os.environ.get("FLOODMARK_DEBUG") == "1"
