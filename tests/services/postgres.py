"""A real PostgreSQL server on a folder that goes away with it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from itertools import count
from pathlib import Path

from ports import free_port
from services.server import READY_WITHIN, Server

USER = "floodmark"


class PostgresServer(Server):
    name = "postgres"
    # SIGTERM would wait for every client to leave.
    ending = signal.SIGINT

    def __init__(self, programs: Path) -> None:
        super().__init__()
        self._programs = programs
        self._numbers = count(1)
        self._user = self._other_user()
        self.port = free_port()

    def start(self) -> None:
        """Also after `stop`: the same port, and all that was committed is still there."""
        data = self.folder / "data"
        if not data.exists():
            self._initdb(data)
        command = [str(self._programs / "postgres"), "-D", str(data), "-p", str(self.port)]
        command += ["-h", "127.0.0.1", "-k", str(self.folder)]
        self.launch(command, ready=self._answers, user=self._user)

    @property
    def url(self) -> str:
        """For SQLAlchemy, with psycopg as its driver."""
        return self._url("postgres")

    def create_database(self, name: str = "database") -> str:
        """The URL of a database that no other test uses."""
        import psycopg

        database = f"{name}_{next(self._numbers)}"
        with psycopg.connect(self._plain("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"'.encode())
        return self._url(database)

    def _url(self, database: str) -> str:
        return self._plain(database).replace("postgresql:", "postgresql+psycopg:", 1)

    def _plain(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self._plain("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _other_user(self) -> tuple[int, int] | None:
        """PostgreSQL refuses to run as root, so root lends it the user nobody."""
        if os.geteuid() != 0:
            return None
        nobody = pwd.getpwnam("nobody")
        os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        return nobody.pw_uid, nobody.pw_gid

    def _initdb(self, data: Path) -> None:
        if not self._runs():
            # A checkout in a home folder that is closed to nobody. The programs find
            # their libraries three folders up, so the whole wheel comes along.
            wheel = self._programs.parents[2]
            copy = shutil.copytree(wheel, self.folder / "wheel")
            self._programs = copy / self._programs.relative_to(wheel)
        options = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        done = self._run("initdb", "-D", str(data), *options)
        if done.returncode:
            raise RuntimeError(f"PostgreSQL has no database:\n{done.stdout}{done.stderr}")

    def _runs(self) -> bool:
        try:
            return self._run("initdb", "--version").returncode == 0
        except PermissionError:
            return False

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        identity = {}
        if self._user:
            identity = {"user": self._user[0], "group": self._user[1], "extra_groups": []}
        return subprocess.run(
            [str(self._programs / program), *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=READY_WITHIN,
            **identity,
        )
