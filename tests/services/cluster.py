"""A real Spark standalone cluster: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ports import free_port
from services.server import Server, answers

# An executor takes a core and what is left of a worker's memory: two workers, two executors.
WORKER_CORES, WORKER_MEMORY = "1", "768m"


def spark_class(name: str, *arguments: str, local: Path, memory: str = "256m") -> list[str]:
    """As the wheel's own script starts a class of Spark; the script becomes the JVM."""
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": local,
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "PYSPARK_PYTHON": sys.executable,
    }
    pairs = [f"{key}={value}" for key, value in settings.items()]
    return ["env", *pairs, str(home / "bin" / "spark-class"), name, *arguments]


class Master(Server):
    name = "spark-master"

    def __init__(self) -> None:
        super().__init__()
        self.port, self.web_port = free_port(), free_port()

    def start(self) -> None:
        command = spark_class(
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--webui-port", str(self.web_port)),
            local=self.folder,
        )
        self.launch(command, ready=lambda: answers(self.port) and answers(self.web_port))

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def has_registered(self, port: int) -> bool:
        """By its log: whether the worker of that port is one of the cluster."""
        return f"Registering worker 127.0.0.1:{port} " in self.log.read_text(errors="replace")


class Worker(Server):
    name = "spark-worker"

    def __init__(self, master: Master) -> None:
        super().__init__()
        self._master = master
        self._port = free_port()

    def start(self) -> None:
        command = spark_class(
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--port", str(self._port)),
            *("--webui-port", str(free_port())),
            *("--cores", WORKER_CORES, "--memory", WORKER_MEMORY),
            *("--work-dir", str(self.folder / "work"), self._master.url),
            local=self.folder / "local",
        )
        self.launch(command, ready=lambda: self._master.has_registered(self._port))

    def kill(self) -> None:
        """The worker and its executors at once, as a machine that loses its power."""
        process = self._process
        assert process is not None
        os.killpg(process.pid, signal.SIGKILL)
        self.stop()

    def executors(self) -> list[Path]:
        """The folders of those that it has started, one an application and executor."""
        return sorted((self.folder / "work").glob("app-*/*"))


class SparkCluster:
    """One master and two workers; tests that kill one start another in its place."""

    def __init__(self) -> None:
        self.master = Master()
        self.workers: list[Worker] = []
        self.folder = Path(tempfile.mkdtemp(prefix="floodmark-cluster-"))

    def __enter__(self) -> SparkCluster:
        try:
            self.master.start()
            self.renew()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in (*self.workers, self.master):
            server.__exit__()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self) -> str:
        return self.master.url

    @property
    def conf(self) -> dict[str, str]:
        """For an application: small executors, and a driver that they find on loopback."""
        return {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(self.folder),
        }

    @property
    def environment(self) -> dict[str, str]:
        """Executors run the driver's Python; another machine would name one that it has."""
        return {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    def kill_worker(self, busy: Callable[[Worker], bool] = lambda _: True) -> Worker:
        """The first that is busy; there is one worker less until `renew`."""
        worker = next(one for one in self.workers if busy(one))
        worker.kill()
        self.workers.remove(worker)
        worker.__exit__()
        return worker

    def renew(self) -> None:
        """Two workers again; the master forgets a dead one by itself."""
        while len(self.workers) < 2:
            worker = Worker(self.master)
            self.workers.append(worker)
            worker.start()

    def wait_for(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds:.0f} s: {what}")
            time.sleep(0.1)
