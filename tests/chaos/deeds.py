"""What operators and machines do to a running driver, and what must hold after each deed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.campaign import Campaign
from chaos.driver import Driver
from chaos.scenario import Scenario
from floodmark.storage.machine.process import Process, family, is_running, process

if TYPE_CHECKING:
    from services.kafka import KafkaServer
    from services.postgres import PostgresServer
    from services.s3 import S3Server

GETS_ON_WITHIN = 240.0
ENDS_WITHIN = 120.0
JVM_ENDS_WITHIN = 30.0
AWAY_SECONDS = 12.0
_KAFKA_MS = "2000"
_DISK_MB = 64


class Deed(str, Enum):
    JVM_KILLED = "JVM killed"
    DRIVER_KILLED = "driver killed"
    GROUP_TERMINATED = "SIGTERM to the group"
    GROUP_INTERRUPTED = "Ctrl-C"
    BROKER_AWAY = "broker away"
    DATABASE_AWAY = "database away"
    STORAGE_AWAY = "storage away"
    DISK_READ_ONLY = "checkpoint read-only"
    DISK_FULL = "checkpoint's disk full"

    def __str__(self) -> str:
        return self.value


ENDING = {
    Deed.DRIVER_KILLED: -signal.SIGKILL,
    Deed.GROUP_TERMINATED: 0,
    Deed.GROUP_INTERRUPTED: 0,
}
"""The exit status that the driver ends with; after the other deeds it goes on by itself."""


def possible(scenario: Scenario, can_mount: bool, on_s3: bool = False) -> list[Deed]:
    found = [*ENDING, Deed.JVM_KILLED]
    found += [Deed.BROKER_AWAY] if scenario.source == "kafka" else []
    found += [Deed.DATABASE_AWAY] if scenario.sink == "postgres" else []
    found += [Deed.STORAGE_AWAY] * 3 if on_s3 else []
    found += [Deed.DISK_READ_ONLY, Deed.DISK_FULL] if can_mount and not on_s3 else []
    return found


class Deeds(Campaign):
    def __init__(
        self,
        scenario: Scenario,
        base: Path,
        seed: str,
        kafka: KafkaServer | None,
        postgres: PostgresServer | None,
        s3: S3Server | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scenario, base, seed, kafka, postgres, s3, conf)
        self._kafka = kafka
        self._s3 = s3
        self._postgres = postgres
        self._moments = random.Random(f"{seed} moments")
        self.done: list[Deed] = []

    def run(self, deeds: list[Deed]) -> None:
        driver: Driver | None = None
        try:
            for deed in deeds:
                driver = driver or self._start()
                driver = self._do(deed, driver)
                self.done.append(deed)
        finally:
            if driver is not None:
                driver.kill()
        self.finish()

    @property
    def restarts(self) -> int:
        """How often a driver has started its query again by itself."""
        return (self._base / "driver.log").read_text(errors="replace").count("starts again in ")

    def _start(self) -> Driver:
        return Driver(
            self._base,
            self._settings,
            self._conf,
            available_now=False,
            environment={"FLOODMARK_CHAOS_KAFKA_MS": _KAFKA_MS},
            arguments=("--restart", "on-failure", "--trigger", "200ms"),
        )

    def _do(self, deed: Deed, driver: Driver) -> Driver | None:
        """The driver that goes on; None where the deed has ended it."""
        self.feed(1)
        self._wait_until_all_is_there(deed, driver)
        members = [process(pid) for pid in family(driver.pid)]
        self.feed(3)
        time.sleep(self._moments.uniform(0.0, 1.5))
        self._doing(deed)(driver)
        if deed in ENDING:
            status = driver.wait(ENDS_WITHIN)
            assert status == ENDING[deed], f"{deed}: status {status}\n{driver.last_words()}"
            self._require_no_process(deed, members)
            if deed is not Deed.DRIVER_KILLED:
                assert not (self._checkpoint / "_floodmark/lease.json").exists(), deed
            self._require_nothing_twice()
            return None
        self._wait_until_all_is_there(deed, driver)
        self._require_nothing_twice()
        return driver

    def _doing(self, deed: Deed) -> Callable[[Driver], None]:
        return {
            Deed.JVM_KILLED: lambda driver: os.kill(_jvm_of(driver), signal.SIGKILL),
            Deed.DRIVER_KILLED: lambda driver: os.kill(driver.pid, signal.SIGKILL),
            Deed.GROUP_TERMINATED: lambda driver: os.killpg(driver.pid, signal.SIGTERM),
            Deed.GROUP_INTERRUPTED: lambda driver: os.killpg(driver.pid, signal.SIGINT),
            Deed.BROKER_AWAY: lambda _: _away(self._kafka),
            Deed.DATABASE_AWAY: lambda _: _away(self._postgres),
            Deed.STORAGE_AWAY: lambda _: _away(self._s3),
            Deed.DISK_READ_ONLY: lambda _: self._read_only(),
            Deed.DISK_FULL: lambda _: self._full(),
        }[deed]

    def mount_checkpoint(self) -> None:
        """A disk of its own under the checkpoint, which can be made full and read-only."""
        self._checkpoint.mkdir(exist_ok=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "tmpfs", str(self._checkpoint)],
            check=True,
        )

    def unmount_checkpoint(self) -> None:
        subprocess.run(["umount", "-l", str(self._checkpoint)], check=True)

    def _read_only(self) -> None:
        # A file that is open for writing forbids it: try until the driver has closed its own.
        self._remount("ro")
        time.sleep(AWAY_SECONDS)
        self._remount("rw")

    def _remount(self, how: str) -> None:
        deadline = time.monotonic() + AWAY_SECONDS
        command = ["mount", "-o", f"remount,{how}", str(self._checkpoint)]
        while subprocess.run(command, capture_output=True, check=False).returncode:
            if time.monotonic() > deadline:
                return  # it is never idle; then this deed is none, and harmless
            time.sleep(0.02)

    def _full(self) -> None:
        filler = self._checkpoint / "filler"
        with filler.open("wb") as file:
            try:
                while True:
                    file.write(b"\0" * 65536)
                    file.flush()
            except OSError:
                pass
        time.sleep(AWAY_SECONDS)
        filler.unlink()

    def _wait_until_all_is_there(self, deed: Deed, driver: Driver) -> None:
        deadline = time.monotonic() + GETS_ON_WITHIN
        while self._found() != self._expected():
            assert driver.status is None, f"{deed}: ended {driver.status}\n{driver.last_words()}"
            assert time.monotonic() < deadline, f"{deed}: stands still\n{driver.last_words()}"
            time.sleep(0.2)

    def _require_no_process(self, deed: Deed, members: list[Process]) -> None:
        deadline = time.monotonic() + JVM_ENDS_WITHIN
        while left := [one.pid for one in members if one.started and is_running(one)]:
            assert time.monotonic() < deadline, f"{deed}: processes {left} are left"
            time.sleep(0.1)


def _jvm_of(driver: Driver) -> int:
    for pid in family(driver.pid)[1:]:
        if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
            return pid
    raise AssertionError("the driver has no JVM")


def _away(server: KafkaServer | PostgresServer | S3Server | None) -> None:
    assert server is not None
    server.stop()
    time.sleep(AWAY_SECONDS)
    server.start()
