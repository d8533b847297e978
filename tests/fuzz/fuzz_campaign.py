"""Damaged places through every verb, in processes with little memory and little time.

    tests/fuzz/fuzz_campaign.py CASES [--seed N]         a campaign
    tests/fuzz/fuzz_campaign.py --case 812 --seed N      one case again, with its traceback

A worker says which case it begins; the parent ends it after 20 seconds and goes on with the
next. A case fails when a command ends with an error that nobody thought of, hangs, takes the
worker down, or changes what it was not told to change.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import re
import resource
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from fuzz_commands import Command, draw
from fuzz_mutations import mutate
from fuzz_places import (
    BAIT,
    CHECKPOINT,
    CLOCK,
    NEW,
    PLAN,
    REPO,
    TEMPORARY,
    Template,
    clear,
    digest,
    lay_bait,
    make_temporary,
    put,
    signs,
    templates,
)

from floodmark.cli.main import run, show_error
from floodmark.errors import FloodmarkError

SECONDS = 20.0
"""Of processor time. By the clock ten times as many, for a machine that has much else to do."""
MEMORY = 1 << 30
SEED = 2026
_CASES_A_PROCESS = 2000
# What steers a terminal; a file's name that is not text comes as U+DC80 to U+DCFF.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PLACES = (CHECKPOINT, NEW, REPO, PLAN)
_SHARED = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")


@dataclass(frozen=True)
class Failure:
    case: int
    what: str
    where: str


@dataclass
class Result:
    seed: int
    cases: int = 0
    mutations: int = 0
    commands: int = 0
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def words(self) -> str:
        statuses = ", ".join(f"{n} ended with {s}" for s, n in sorted(self.statuses.items()))
        lines = [
            f"seed {self.seed}: {self.cases} cases, {self.mutations} mutations, "
            f"{self.commands} commands in "
            f"{self.seconds:.0f} s: {statuses}; {len(self.failures)} failures"
        ]
        kinds = Counter(failure.what for failure in self.failures)
        shown = {failure.what: failure for failure in self.failures}
        for what, failure in sorted(shown.items(), key=lambda item: -kinds[item[0]]):
            lines += [
                f"{kinds[what]} times: {what}\n  {failure.where}",
                f"  again: python tests/fuzz/fuzz_campaign.py --case {failure.case} "
                f"--seed {self.seed}",
            ]
        return "\n".join(lines)


@contextlib.contextmanager
def _place() -> Iterator[Path]:
    """A folder of this process alone. Its name is as long for everyone, so that cases agree."""
    for number in range(1000):
        folder = _SHARED / f"floodmark-fuzz-{os.getuid()}-{number:03d}"
        folder.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            continue
        try:
            yield folder
        finally:
            clear(folder)
            os.close(handle)
        return
    raise RuntimeError("a thousand campaigns are running")


def campaign(cases: int, seed: int = SEED, first: int = 0, workers: int | None = None) -> Result:
    result = Result(seed)
    began = time.monotonic()
    count = workers or os.cpu_count() or 1
    CLOCK.install()
    _warm_up()
    running = [_Worker(range(first + n, first + cases, count), seed) for n in range(count)]
    while running:
        ready, _, _ = select.select([w.pipe for w in running], [], [], 0.5)
        for worker in list(running):
            if worker.pipe in ready:
                worker.hear(result)
            worker.check_time(result)
            if worker.ended:
                running.remove(worker)
                if worker.left == worker.cases:
                    raise RuntimeError(f"a worker did not begin: {result.failures[-1:]}")
                if worker.left:
                    running.append(_Worker(worker.left, seed))
    result.seconds = time.monotonic() - began
    return result


def _warm_up() -> None:
    """What every worker needs is imported once, before they are forked."""
    import cramjam  # noqa: F401
    import lz4.block  # noqa: F401
    import numpy  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import rocksdict  # noqa: F401
    import xxhash  # noqa: F401

    for layer in (
        *("cli", "api", "changes", "diagnosis", "rules", "statestore"),
        *("storage", "connectors", "state", "checkpoint"),
    ):
        package = importlib.import_module(f"floodmark.{layer}")
        for module in pkgutil.walk_packages(package.__path__, f"floodmark.{layer}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # or every worker's collector goes through all modules again and again


class _Worker:
    def __init__(self, cases: range, seed: int) -> None:
        self.cases = self.left = cases
        self.ended = False
        self.pipe, writing = os.pipe()
        self._rest = b""
        self._now: tuple[int, str] | None = None
        self._began, self._used = time.monotonic(), 0.0
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            code = 1
            try:
                _work(cases[:_CASES_A_PROCESS], seed, writing)
                code = 0
            except BaseException:  # a fork must never go back into its parent's code
                os.write(writing, f"F -1\t{_flat(traceback.format_exc())}\t-\n".encode())
            finally:
                os._exit(code)
        os.close(writing)

    def hear(self, result: Result) -> None:
        data = os.read(self.pipe, 1 << 16)
        if not data:
            _, status = os.waitpid(self.pid, 0)
            os.close(self.pipe)
            self.ended = True
            if status and self._now is not None:
                self._fail(result, f"the process died ({os.waitstatus_to_exitcode(status)})")
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._note(line.decode("utf-8", "replace"), result)

    def _note(self, line: str, result: Result) -> None:
        kind, _, rest = line.partition(" ")
        if kind == "B":
            number, used, words = rest.split(" ", 2)
            self._used = float(used)
            if self._now is None or self._now[0] != int(number):
                result.cases += 1
                at = self.left.index(int(number))
                self.left = self.left[at + 1 :]
            self._now = int(number), words
            self._began = time.monotonic()
        elif kind == "M":
            result.mutations += int(rest)
        elif kind == "S":
            result.commands += 1
            result.statuses[int(rest)] += 1
        else:
            number, what, where = rest.split("\t")
            self._told(result, Failure(int(number), what, where))

    def check_time(self, result: Result) -> None:
        waited = time.monotonic() - self._began
        if self.ended or waited < SECONDS:
            return
        if self._processor_time() - self._used > SECONDS or waited > 10 * SECONDS:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.pipe)
            self.ended = True
            self._fail(result, f"longer than {SECONDS:.0f} seconds")

    def _processor_time(self) -> float:
        text = Path(f"/proc/{self.pid}/stat").read_text(errors="replace")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _fail(self, result: Result, what: str) -> None:
        number, words = self._now or (-1, "before the first case")
        self._told(result, Failure(number, what, words))

    def _told(self, result: Result, failure: Failure) -> None:
        result.failures.append(failure)
        if os.environ.get("FLOODMARK_FUZZ_TELL"):
            print(result.cases, failure, flush=True)


def _flat(text: str) -> str:
    return text.strip().replace("\t", " ").replace("\n", " | ")


def _work(cases: range, seed: int, pipe: int) -> None:
    os.environ["FLOODMARK_DEBUG"] = "1"
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    with _place() as place:
        lay_bait(place)
        make_temporary(place)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        every = templates(place)
        bait = digest(place / BAIT)
        os.chdir(place / BAIT)  # what goes by a relative path goes into the bait
        for number in cases:
            for failure in _case(number, seed, place, every, bait, pipe):
                os.write(
                    pipe, f"F {number}\t{_flat(failure.what)}\t{_flat(failure.where)}\n".encode()
                )


def _case(
    number: int, seed: int, place: Path, every: list[Template], bait: object, pipe: int
) -> Iterator[Failure]:
    rng = Random(f"{seed} {number}")
    os.write(pipe, f"B {number} {time.process_time()} being made\n".encode())
    template = rng.choice(every)
    tree = dict(template.tree)
    changes = [mutate(rng, tree, str(place)) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    os.write(pipe, f"M {len(changes)}\n".encode())
    commands = draw(rng, template, str(place))
    if not _targets_a_place_of_ours(tree.get(PLAN), place):
        commands.pop()  # where a saved plan goes is the word of the user who gives it
    put(place, tree)
    before = signs(*(place / name for name in _PLACES))
    for command in commands:
        words = f"{template.name}: {'; '.join(changes)}: {' '.join(command.arguments)}"
        told = f"B {number} {time.process_time()} {_flat(words)[:1000]}\n"
        os.write(pipe, told.encode("utf-8", "backslashreplace"))
        status, trouble = _run(command)
        os.write(pipe, f"S {status}\n".encode())
        words = words.encode("utf-8", "backslashreplace").decode()[:1000]
        if trouble:
            yield Failure(number, trouble, words)
        if not command.changes and signs(*(place / name for name in _PLACES)) != before:
            yield Failure(number, "a command that only looks has changed its place", words)
        if digest(place / BAIT) != bait or set(os.listdir(place)) - {*_PLACES, BAIT, TEMPORARY}:  # noqa: PTH208
            yield Failure(number, "something outside of the place was changed", words)
            lay_bait(place)
        if os.listdir(place / TEMPORARY):  # noqa: PTH208
            yield Failure(number, "a temporary file is left", words)
            make_temporary(place)


def _targets_a_place_of_ours(plan: object, place: Path) -> bool:
    try:
        target = json.loads(plan)["target"] if isinstance(plan, bytes) else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return True
    allowed = tuple(str(place / name) for name in (CHECKPOINT, NEW, REPO))
    return not isinstance(target, str) or target in ("", *allowed) or "/" not in target


def _run(command: Command) -> tuple[int, str]:
    """(exit status, what is wrong with how it ended)."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = run(list(command.arguments))
            except FloodmarkError as error:  # FLOODMARK_DEBUG lets it through
                show_error(error)
                status = error.status
    except BaseException as error:
        return 70, _told(error)
    if not 0 <= status < 6:
        return status, f"exit {status}: {err.getvalue()[-500:]}"
    if "not enough memory" in err.getvalue():
        return status, "memory ran out before a limit was met"
    printed = out.getvalue() + err.getvalue()
    steering = _STEERING.search(printed)
    if steering is None:
        return status, ""
    around = printed[max(steering.start() - 40, 0) : steering.end() + 40]
    return status, f"{around!r} is printed as it is"


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/floodmark/" in f.filename][-3:]
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(ours))
    return f"{type(error).__name__}: {str(error)[:200]} at {places}"


def again(number: int, seed: int) -> int:
    """One case, in this process, with everything it says."""
    CLOCK.install()
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    reading, writing = os.pipe()
    with _place() as place:
        lay_bait(place)
        make_temporary(place)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        every = templates(place)
        os.environ["FLOODMARK_DEBUG"] = "1"
        failures = list(_case(number, seed, place, every, digest(place / BAIT), writing))
    os.close(writing)
    with os.fdopen(reading) as notes:
        print(notes.read())
    for failure in failures:
        print(failure.what, failure.where, sep="\n")
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int)
    options = parser.parse_args()
    if options.case is not None:
        return again(options.case, options.seed)
    result = campaign(options.cases, options.seed, options.first)
    print(result.words())
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
