"""`floodmark`: finds the verb, runs it, and turns errors into words and an exit status."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from contextlib import AbstractContextManager, nullcontext

import click

from floodmark import __version__
from floodmark.cli.words import echo, is_terminal
from floodmark.errors import CannotRead, FloodmarkError, WouldLose
from floodmark.limits import current, raise_limits
from floodmark.visible import one_line

# verb → (module, what it does). The module is imported when the verb is used.
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
"""Set by the shell's script when it asks what may follow."""
_LIVE = {"", "demo", "run", "serve", "watch"}
"""These say themselves how far they are."""


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
        # Without importing the verbs: --help is as quick as the rest.
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
    current()  # a wrong limit is said at once, not at the first large file


def main() -> None:
    _fill_closed_descriptors()
    sys.exit(run(sys.argv[1:]))


def _fill_closed_descriptors() -> None:
    """For `2>&-`: a file that is opened later must not become standard error."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one
            os.set_inheritable(opened, True)
    sys.stdout = sys.stdout or io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(2, "w", closefd=False))


def run(arguments: list[str]) -> int:
    """The exit status of a command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name or an offset that the terminal cannot show is no reason to show nothing.
            stream.reconfigure(errors="backslashreplace")
    try:
        with _waiting(_verb(arguments)):
            result = floodmark.main(arguments, prog_name="floodmark", standalone_mode=False)
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
        # The reader of a pipe, `head` say, has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except FloodmarkError as error:
        if _debugging():
            raise
        show_error(error)
        _show_accepting(error, arguments)
        return error.status
    except MemoryError:
        if _debugging():
            raise
        echo(
            "floodmark: there is not enough memory for this\n"
            "  A file is larger than this process can hold, or memory is short here.\n"
            "  Run it where there is more, or read less at once: one batch, one operator.",
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
    """Storage says so itself: this is a file that floodmark needs on its way."""
    import tempfile

    where = error.filename or tempfile.gettempdir()
    echo(
        f"floodmark: the disk is full at {where}\n"
        "  Files that are unpacked on the way need room in the folder for temporary files.\n"
        "  Make room there, or name another folder with TMPDIR, and repeat the command.",
        err=True,
    )
    return CannotRead.status


def _waiting(verb: str) -> AbstractContextManager[object]:
    """The sign of life, where somebody looks and the verb shows none itself."""
    if verb in _LIVE or not is_terminal():
        return nullcontext()
    from floodmark.cli.waiting import Waiting

    return Waiting(verb)


def _verb(arguments: list[str]) -> str:
    return next((one for one in arguments if not one.startswith("-")), "")


def show_error(error: FloodmarkError) -> None:
    lines = [f"{type(error).__name__}: {one_line(error.what)}"]
    lines += [f"  {line}" for part in (error.why, error.do) if part for line in part.splitlines()]
    echo(_public("\n".join(lines)), err=True)


def _show_accepting(error: FloodmarkError, arguments: list[str]) -> None:
    """The same command with what it has to accept, to be pasted."""
    if isinstance(error, WouldLose) and error.accept:
        import shlex

        named = [part for name in error.accept for part in ("--accept", name)]
        end = arguments.index("--") if "--" in arguments else len(arguments)
        again = shlex.join(["floodmark", *arguments[:end], *named, *arguments[end:]])
        echo(_public(f"  {again}"), err=True)


def _public(words: str) -> str:
    """Without secrets, those of the environment among them."""
    from floodmark.secret_text import redacted, remember_environment

    remember_environment(os.environ)
    return redacted(words)


def _debugging() -> bool:
    return os.environ.get("FLOODMARK_DEBUG") == "1"
