"""Drivers that stand still in the middle of a batch and come back after another took over.

One driver runs; at a random moment it is paused with SIGSTOP, Python and JVM, at times the JVM
alone. A second one takes the checkpoint, commits at least one batch, and the first goes on with
SIGCONT: it has to stop by itself, with exit status 5. Then the second is the one to be paused,
and so on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.campaign import ENDS_WITHIN, Campaign
from chaos.driver import Driver
from floodmark.engine.drill.killing.traps import batches
from floodmark.storage.files import open_files
from floodmark.storage.lease_files import read_holder

SLOW_MS = 60
_POLL_SECONDS = 0.02
# A paused transaction keeps the other driver waiting in the database until it goes on.
_GIVEN_TO_COMMIT = 20.0
_SUPERSEDED = 5
_REFUSED = 4
_JVM_ALONE = 0.25
# The last write of a paused driver may land in the log after the takeover: Spark then ends the
# other one ("Multiple streaming jobs detected"), and it starts again.
_OPTIONS = ("--allow", "checkpoint-in-use", "--restart", "on-failure")


@dataclass
class Pauses:
    """What the paused drivers were doing, and what came of it."""

    at: Counter[str] = field(default_factory=Counter)
    before_commit: int = 0
    """Times that the first went on before the second had committed."""

    @property
    def number(self) -> int:
        return sum(self.at.values())

    def words(self) -> str:
        at = ", ".join(f"{name} {number}" for name, number in sorted(self.at.items()))
        return (
            f"{self.number} pauses ({at}); {self.before_commit} went on before the other's commit"
        )


class Pausing(Campaign):
    """Runs `pauses` of them, then to the end; the sink must equal the oracle."""

    def run(self, pauses: int) -> Pauses:
        found = Pauses()
        self.feed(1)
        current = self._start()
        try:
            self._until_committed(current, set())
            for _ in range(pauses):
                current = self._pause_and_replace(current, found)
            current.ask_to_stop()
            status = current.wait(ENDS_WITHIN)
            assert status == 0, f"{self.scenario.name}: {status}\n{current.last_words()}"
        finally:
            current.resume()
            current.kill()
        assert read_holder(open_files(str(self._checkpoint))) is None, "the lease is not free"
        self.finish()
        return found

    def start_two(self) -> str:
        """Two runs over what is there, at one instant: one does it, the other is refused."""
        self.feed(2)
        both = [self._driver(available_now=True, environment={}) for _ in range(2)]
        try:
            statuses = sorted(one.wait(ENDS_WITHIN) for one in both)
        finally:
            for one in both:
                one.kill()
        # The slower one may look after the other has come to its end, and finds nothing to do.
        assert statuses in ([0, _REFUSED], [0, 0]), f"{statuses}\n{both[0].last_words()}"
        self.require_equal()
        return "one refused" if statuses[1] == _REFUSED else "one after the other"

    def _start(self) -> Driver:
        environment = {"FLOODMARK_CHAOS_SLOW_MS": str(SLOW_MS)}
        return self._driver(available_now=False, environment=environment, arguments=_OPTIONS)

    def _pause_and_replace(self, first: Driver, found: Pauses) -> Driver:
        _, before = self._logs()
        self.feed(2)
        self._wait(first, lambda: bool(self._logs()[0] - before), ENDS_WITHIN)
        time.sleep(self._rng.uniform(0, 1.5))
        jvm_alone = self._rng.random() < _JVM_ALONE
        first.pause(jvm_alone)
        planned, committed = self._logs()
        where = "in a batch" if planned - committed else "between batches"
        found.at[where + (", the JVM alone" if jvm_alone else "")] += 1
        self.feed(1)  # so that there is something to commit, wherever the first one stands
        second = self._start()
        try:
            if not self._until_committed(second, committed, _GIVEN_TO_COMMIT):
                found.before_commit += 1
            first.resume()
            status = first.wait(ENDS_WITHIN)
            assert status == _SUPERSEDED, f"{self.scenario.name}: {status}\n{first.last_words()}"
            self.feed(1)
            self._until_committed(second, self._logs()[1])
            self._require_nothing_twice()
        except BaseException:
            second.kill()
            raise
        finally:
            first.resume()
            first.kill()
        return second

    def _logs(self) -> tuple[set[int], set[int]]:
        return batches(self._checkpoint / "offsets"), batches(self._checkpoint / "commits")

    def _until_committed(
        self, driver: Driver, before: set[int], seconds: float = ENDS_WITHIN
    ) -> bool:
        """By this driver, as any other is paused."""
        return self._wait(driver, lambda: bool(self._logs()[1] - before), seconds)

    def _wait(self, driver: Driver, done: Callable[[], bool], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if done():
                return True
            assert driver.status is None, f"{self.scenario.name}\n{driver.last_words()}"
            time.sleep(_POLL_SECONDS)
        assert seconds < ENDS_WITHIN, f"{self.scenario.name}: no commit\n{driver.last_words()}"
        return False
