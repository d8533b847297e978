"""The verbs on a standalone cluster, with the checkpoints on S3.

Executors write the state to S3 themselves, with the jars that the driver gives them, and rewrite
it with floodmark's own codec. A plain sum over all input says what the sink must hold.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from integration.s3_stream import COUNTED, TOTAL, application, feed, oracle, written
from ports import free_port

if TYPE_CHECKING:
    from services.cluster import SparkCluster
    from services.s3 import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.soak, pytest.mark.timeout(3600)]

PLAIN = """
import sys
from pyspark.sql import SparkSession

root, orders, sink = sys.argv[1:]
spark = SparkSession.builder.appName("plain").getOrCreate()
rows = spark.readStream.schema("customer STRING, paid LONG").json(orders)
totals = rows.groupBy("customer").sum("paid").toDF("customer", "total")

def write(batch, number):
    batch.coalesce(1).write.mode("overwrite").json(sink)

query = (
    totals.writeStream.outputMode("complete").foreachBatch(write)
    .option("checkpointLocation", f"{root}/checkpoint").trigger(availableNow=True).start()
)
query.awaitTermination()
spark.stop()
"""
STARTED = PLAIN.replace("query = (", "import floodmark\n\nquery = floodmark.start((").replace(
    '.option("checkpointLocation", f"{root}/checkpoint").trigger(availableNow=True).start()\n)',
    '.trigger(availableNow=True)), f"{root}/checkpoint")',
)


# Not a setting of every verb: `migrate` takes --partitions, and refuses this.
FEW = ("--conf", "spark.sql.shuffle.partitions=2")


class OnCluster:
    """`floodmark` on a cluster, with a stream whose checkpoints lie on S3."""

    def __init__(self, cluster: SparkCluster, s3: S3Server, folder: Path) -> None:
        self.cluster, self.s3, self.folder = cluster, s3, folder
        self.place = s3.place("cluster")
        self.orders, self.sink = folder / "orders", folder / "sink"
        settings = {**s3.spark_conf, **cluster.conf}
        self.conf = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
        self.conf += ["--master", cluster.url]
        told = {**s3.storage_options, "client_kwargs": '{"region_name": "us-east-1"}'}
        self.storage = [part for pair in told.items() for part in ("--storage", "=".join(pair))]
        self.environment = cluster.environment

    def write(self, name: str, sums: str) -> Path:
        path = self.folder / name
        path.write_text(application(sums))
        return path

    def root(self, name: str) -> str:
        return f"{self.place}/{name}"

    def settings(self, root: str) -> list[str]:
        given = {"root": root, "orders": self.orders, "sink": self.sink}
        return [part for key, value in given.items() for part in ("--set", f"{key}={value}")]

    def run(self, *arguments: str, expected: int = 0) -> str:
        return self.done([str(Path(sys.executable).with_name("floodmark")), *arguments], expected)

    def done(self, command: list[str], expected: int = 0) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=400, check=False, env=self.environment
        )
        assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def stream(self, app: Path, name: str, *more: str) -> str:
        root = self.root(name).replace("s3://", "s3a://")
        given = [*self.settings(root), *self.conf, *FEW, *more]
        return self.run("run", str(app), "--available-now", *given)

    def submit(self, script: str, *arguments: str) -> str:
        """By spark-submit, with floodmark's own list of jars for S3."""
        from floodmark.engine.spark.session import SessionOptions, settled_conf

        path = self.folder / "script.py"
        path.write_text(script)
        jars = settled_conf(SessionOptions("submit", ("s3",), self.s3.spark_conf))["spark.jars"]
        command = [str(Path(sys.executable).with_name("spark-submit")), *self.conf]
        command += ["--jars", jars, *FEW, *arguments, str(path)]
        command += [self.root("s").replace("s3://", "s3a://"), str(self.orders), str(self.sink)]
        return self.done(command)


@pytest.fixture
def on_cluster(cluster: SparkCluster, s3: S3Server, tmp_path: Path) -> OnCluster:
    made = OnCluster(cluster, s3, tmp_path)
    feed(made.orders, *range(1, 7))
    return made


def test_run_migrate_repartition_and_rehearse(on_cluster: OnCluster) -> None:
    commands = on_cluster
    first, second = commands.write("first.py", TOTAL), commands.write("second.py", COUNTED)
    commands.stream(first, "a")
    assert written(commands.sink) == oracle(commands.orders)
    old = f"{commands.root('a')}/checkpoint"
    read = _document(commands.run("state", old, "--json", *commands.storage))
    assert {row["key"]["customer"] for row in read["rows"]} == {"c0", "c1", "c2"}

    settings = commands.settings(commands.root("a").replace("s3://", "s3a://"))
    common = [*settings, *commands.conf, *commands.storage]
    feed(commands.orders, 7)
    refused = commands.run("check", old, str(first), "--rehearse", *common, expected=2)
    assert "--scratch DIR" in refused
    scratch = ["--scratch", str(commands.folder / "shared")]
    told = commands.run("check", old, str(first), "--rehearse", *scratch, *common)
    assert "run one batch of it on a fork" in told

    moved = f"{commands.root('b')}/checkpoint"
    on_spark = ["--on-spark", "--execute", "--wait", "60"]
    commands.run("migrate", old, moved, "--app", str(second), *on_spark, *common)
    feed(commands.orders, 8)
    commands.stream(second, "b")
    assert written(commands.sink) == oracle(commands.orders)

    spread = f"{commands.root('c')}/checkpoint"
    given = [*on_spark, *commands.conf, *commands.storage]
    commands.run("repartition", moved, spread, "--partitions", "5", *given)
    feed(commands.orders, 9, 10)
    commands.stream(second, "c", "--conf", "spark.sql.shuffle.partitions=5")
    assert written(commands.sink) == oracle(commands.orders)
    executed = [one for worker in commands.cluster.workers for one in worker.executors()]
    assert len({one.parent.name for one in executed}) >= 5, "each command was an application there"


def test_drill(on_cluster: OnCluster) -> None:
    commands = on_cluster
    app = commands.write("first.py", TOTAL)
    settings = commands.settings(commands.root("d").replace("s3://", "s3a://"))
    asked = [str(app), "--input", str(commands.orders), *settings, *commands.conf, "--json"]
    points = ["--point", "after-offset", "--point", "during-state", "--point", "after-sink"]
    assert "--scratch DIR" in commands.run("drill", *asked, expected=2)
    scratch = ["--scratch", str(commands.folder / "shared")]
    found = _document(commands.run("drill", *asked, *points, *scratch))
    assert {one["point"]: one["survived"] for one in found["points"]} == {
        "after-offset": True,
        "during-state": True,
        "after-sink": True,
    }


@pytest.mark.parametrize("script", [PLAIN, STARTED], ids=["plain", "floodmark.start"])
def test_spark_submit(script: str, on_cluster: OnCluster) -> None:
    commands = on_cluster
    commands.submit(script)
    feed(commands.orders, 7, 8)
    commands.submit(script)
    assert written(commands.sink) == oracle(commands.orders)
    place = f"{commands.root('s')}/checkpoint"
    told = _document(commands.run("inspect", place, "--json", *commands.storage))
    assert told["committed_batch"] == 1


def test_spark_submit_of_a_plain_script_under_floodmark_python(on_cluster: OnCluster) -> None:
    commands = on_cluster
    python = Path(sys.executable).with_name("floodmark-python")
    told = commands.submit(PLAIN, "--conf", f"spark.pyspark.driver.python={python}")
    assert written(commands.sink) == oracle(commands.orders)
    assert "batch 0" in told, told


@pytest.mark.parametrize("supervisor", ["systemd", "kubernetes", "yarn"])
def test_what_deploy_writes_runs_on_the_cluster(supervisor: str, on_cluster: OnCluster) -> None:
    """The command of the unit or manifest; the supervisor itself is not here."""
    commands = on_cluster
    app = commands.write("first.py", TOTAL)
    settings = commands.settings(commands.root("d").replace("s3://", "s3a://"))
    image = ["--image", "example/orders:1"] if supervisor == "kubernetes" else []
    port = ["--health-port", str(free_port())]
    # What a unit may not hold, a secret, the driver finds where Spark looks by itself.
    defaults = commands.folder / "conf" / "spark-defaults.conf"
    defaults.parent.mkdir()
    few = {"spark.sql.shuffle.partitions": "2"}
    pairs = {**commands.s3.spark_conf, **commands.cluster.conf, **few}
    defaults.write_text("".join(f"{key} {value}\n" for key, value in pairs.items()))
    environment = {**commands.environment, "SPARK_CONF_DIR": str(defaults.parent)}
    master = ["--master", commands.cluster.url]
    asked = ["deploy", supervisor, str(app), *image, *port, "--", *settings]
    assert "secret" in commands.run(*asked, *commands.conf, *master, expected=2)
    text = commands.run(*asked, *master)
    command = _command(supervisor, text)
    log = commands.folder / "log"
    with log.open("wb") as out:
        running = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
            cwd=commands.folder,
        )
    try:
        deadline = time.monotonic() + 300
        while written(commands.sink) != oracle(commands.orders):
            assert running.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)
        running.send_signal(signal.SIGTERM)
        assert running.wait(300) == 0, log.read_text()
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)


def _command(supervisor: str, text: str) -> list[str]:
    if supervisor == "systemd":
        line = next(line for line in text.splitlines() if line.startswith("ExecStart="))
        return shlex.split(line.partition("=")[2])
    if supervisor == "yarn":
        return ["sh", "-c", _document(text)["components"][0]["launch_command"]]
    import yaml

    [container] = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    # In the image it is on the PATH; here it is beside this Python.
    return [str(Path(sys.executable).with_name("floodmark")), *container["command"][1:]]


def _document(said: str) -> Any:
    """What `--json` has put on standard output; what was said to people follows it."""
    return json.JSONDecoder().raw_decode(said)[0]
