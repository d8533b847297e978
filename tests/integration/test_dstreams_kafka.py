"""A DStreams direct stream on a real Kafka: looked into, killed, recovered, and left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import floodmark
from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint
from floodmark.dstreams.plain_pickle import NotPlain
from floodmark.errors import NotCarried

from quiet_log import QUIET  # isort: skip
from scala_code import compiled  # isort: skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from services.kafka import KafkaServer

pytestmark = [pytest.mark.spark, pytest.mark.services]

SOURCE = Path(__file__).parents[1] / "dstreams" / "dstreams_code.scala"
STRUCTURED = """
import json
from floodmark import pipeline
from pyspark.sql import functions as F

def store(frame, batch):
    rows = {{row.customer: [row.orders, row.cents] for row in frame.collect()}}
    with open("{root}/structured.json", "w") as out:
        json.dump(rows, out)

@pipeline(checkpoint="{root}/new", conf={{"spark.sql.shuffle.partitions": "2"}})
def totals(spark, start):
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "{kafka}")
        .option("subscribe", "{topic}")
        .option("startingOffsets", "earliest")
        .load()
    )
    row = F.split(F.col("value").cast("string"), ",")
    orders = records.select(row[0].alias("customer"), row[1].cast("long").alias("cents"))
    sums = orders.groupBy("customer").agg(
        F.count("*").alias("orders"), F.sum("cents").alias("cents")
    )
    return sums.writeStream.outputMode("complete").foreachBatch(store)
"""


class Shop:
    """Orders in a topic, and what they sum up to."""

    def __init__(self, kafka: KafkaServer, root: Path, seed: int) -> None:
        self.kafka, self.root = kafka, root
        self.topic = kafka.create_topic("sales", partitions=2)
        self.chance = random.Random(seed)
        self.orders: Counter[str] = Counter()
        self.cents: Counter[str] = Counter()
        self.checkpoint = root / "cp"

    def sell(self, number: int) -> None:
        rows = []
        for _ in range(number):
            customer, cents = f"c{self.chance.randint(1, 5)}", self.chance.randint(1, 5000)
            self.orders[customer] += 1
            self.cents[customer] += cents
            rows.append(f"{customer},{cents}")
        self.kafka.produce(self.topic, rows)

    @property
    def oracle(self) -> dict[str, list[int]]:
        return {one: [self.orders[one], self.cents[one]] for one in self.orders}

    def totals(self, name: str = "dstreams.json") -> dict[str, list[int]]:
        path = self.root / name
        return json.loads(path.read_text()) if path.exists() else {}

    def goes_on(self, before: dict[str, list[int]]) -> bool:
        return self.totals() not in ({}, before)

    def inside(self) -> DStreamsCheckpoint:
        found = floodmark.inspect(str(self.checkpoint)).dstreams
        assert found is not None
        return found

    def ranges(self) -> dict[int, list[tuple[int, int, int]]]:
        """Batch time → (partition, from, until), as the checkpoint has them."""
        [stream] = [one for one in self.inside().streams if one.offsets]
        assert stream.kind == "DirectKafkaInputDStream"
        return {
            at: sorted((one.partition, one.from_, one.until) for one in ranges)
            for at, ranges in stream.offsets.items()
            if all(one.topic == self.topic for one in ranges)
        }

    def require_no_gap(self) -> None:
        """Each batch begins where the one before it ended, and none beyond the broker's end."""
        ends = self.kafka.end_offsets(self.topic)
        reached: dict[int, int] = {}
        for _, ranges in sorted(self.ranges().items()):
            for partition, start, until in ranges:
                assert reached.get(partition, start) == start
                assert start <= until <= ends[partition]
                reached[partition] = until

    def saved_time(self) -> int:
        """The batch of the newest state that is saved as a whole; 0 for none."""
        whole = [rdd.batch_time_ms or 0 for rdd in self.inside().rdds if rdd.missing is None]
        return max(whole, default=0)

    def holds_all(self) -> bool:
        """Whether a saved state has every order: the ranges of its batch end where the broker's
        do."""
        ranges = self.ranges().get(self.saved_time(), [])
        return {one: until for one, _, until in ranges} == self.kafka.end_offsets(self.topic)

    def leave(self) -> None:
        app = self.root / "structured.py"
        app.write_text(
            STRUCTURED.format(root=self.root, kafka=self.kafka.bootstrap, topic=self.topic)
        )
        reshape = self.root / "reshape.py"
        reshape.write_text(
            "def state(key, value):\n    return key, (value['orders'], value['cents'])\n"
        )
        old, new = str(self.checkpoint), str(self.root / "new")
        # Java sorts the fields of an object: by their place the cents would be the orders.
        with pytest.raises(NotCarried, match="an object with the fields cents, orders") as refused:
            floodmark.leave_dstreams(old, new, app=str(app))
        assert "--with FILE.py" in refused.value.do
        floodmark.leave_dstreams(old, new, app=str(app), with_file=str(reshape), execute=True)
        for _ in range(2):
            floodmark.run(f"{app}:totals", available_now=True)
            assert self.totals("structured.json") == self.oracle
            self.sell(7)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scala") / "classes"


@pytest.fixture(scope="module")
def code(spark: SparkSession, fetched: ModuleType, classes: Path) -> Any:
    return compiled(spark, SOURCE, classes, fetched.dstreams_kafka()).DStreamsCode


@pytest.fixture
def shop(kafka: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr("floodmark.engine.dstreams.leaving.require_stopped", lambda *_: None)
    return Shop(kafka, tmp_path, seed=19)


def _until(
    reached: Callable[[], bool],
    what: str,
    seconds: float = 60,
    process: subprocess.Popen[bytes] | None = None,
) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, what
        assert process is None or process.poll() is None, what
        time.sleep(0.1)


def test_a_direct_stream_is_looked_into_and_left(
    spark: SparkSession, code: Any, shop: Shop
) -> None:
    shop.sell(40)
    ssc = code.sales(
        spark.sparkContext._jsc.sc(),
        shop.kafka.bootstrap,
        shop.topic,
        str(shop.checkpoint),
        str(shop.root / "dstreams.json"),
    )
    ssc.start()
    try:
        _until(lambda: shop.totals() == shop.oracle, "the orders were not summed")
        _until(lambda: shop.checkpoint.is_dir() and shop.holds_all(), "the state was not saved")
        # What comes now is in batches after the saved state, or in none.
        shop.sell(25)
    finally:
        ssc.stop(False, False)
    shop.require_no_gap()
    shop.sell(10)
    shop.leave()


Submit = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def submit(
    spark: SparkSession, code: Any, classes: Path, fetched: ModuleType, tmp_path: Path
) -> Iterator[Submit]:
    """Starts the application as spark-submit does, in a process group of its own."""
    import pyspark

    home = Path(pyspark.__file__).parent
    quiet = tmp_path / "log4j2.properties"
    quiet.write_text(QUIET)
    jar = tmp_path / "sales.jar"
    with zipfile.ZipFile(jar, "w") as packed:
        for path in classes.rglob("*.class"):
            packed.write(path, path.relative_to(classes))
    given = str(spark.sparkContext.getConf().get("spark.jars")).split(",")
    jars = ",".join([*map(str, fetched.dstreams_kafka()), *given])
    begun: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str, **conf: str) -> subprocess.Popen[bytes]:
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # The connector is of an earlier release, whose log lines Spark 4.2 cannot make.
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
            **{key.replace("_", "."): value for key, value in conf.items()},
        }
        command = [
            *(str(home / "bin" / "spark-submit"), "--master", "local[2]"),
            *("--class", "floodmark.scalacode.DStreamsCode", "--jars", jars),
            *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
            *(str(jar), *arguments),
        ]
        log = (tmp_path / "run.log").open("ab")
        environment = {**os.environ, "SPARK_HOME": str(home)}
        begun.append(
            subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=environment
            )
        )
        return begun[-1]

    yield start
    for process in begun:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(300)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_killed_and_recovered_and_then_left(shop: Shop, submit: Submit) -> None:
    kills = 8
    shop.sell(20)
    for kill in range(kills + 1):
        process = submit(
            shop.kafka.bootstrap,
            shop.topic,
            str(shop.root / "dstreams.json"),
            str(shop.checkpoint),
        )
        shop.sell(10)
        _until(partial(shop.goes_on, shop.totals()), "it does not run", 120, process)
        lives = time.monotonic() + shop.chance.uniform(0.2, 4)
        while time.monotonic() < lives:
            shop.sell(shop.chance.randint(1, 6))
            time.sleep(shop.chance.uniform(0.05, 0.4))
        if kill == kills:
            _until(lambda: shop.totals() == shop.oracle, "orders are lost or counted twice", 120)
        _kill(process)
        shop.require_no_gap()
        assert any("sales.jar" in one for one in shop.inside().jars)
    pending = shop.inside().pending_times or ()
    shop.sell(15)
    shop.leave()
    print(
        f"{kills + 1} kills, {sum(shop.orders.values())} orders, "
        f"{len(pending)} batches pending at the last kill"
    )


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_states_that_kryo_has_saved_are_read_through_spark(submit: Submit, tmp_path: Path) -> None:
    """The classes of the application are known here, as --conf spark.jars makes them known."""
    folder, place = tmp_path / "in", str(tmp_path / "cp")
    folder.mkdir()
    process = submit(
        str(folder), place, spark_serializer="org.apache.spark.serializer.KryoSerializer"
    )
    _until(lambda: any((tmp_path / "cp").glob("checkpoint-*")), "no checkpoint", 120)
    (tmp_path / ".orders").write_text("c1,5\nc2,7\nc1,3\n")
    (tmp_path / ".orders").rename(folder / "orders.csv")

    def whole_since() -> int:
        """States that were saved after the file was taken."""
        found = floodmark.inspect(place).dstreams
        assert found is not None
        taken = [at for stream in found.streams for at, files in stream.files.items() if files]
        after = [
            one.stream
            for one in found.rdds
            if taken and one.missing is None and (one.batch_time_ms or 0) >= min(taken)
        ]
        return len(set(after))

    _until(lambda: whole_since() == 2, "the states were not saved", 120)
    _kill(process)
    found = floodmark.inspect(place).dstreams
    assert found is not None
    assert found.has_kryo_records
    by_kind = {found.streams[at].kind: at for at in found.state_streams}
    with pytest.raises(NotPlain, match="saves its state with Kryo"):
        floodmark.read_state(place, operator=by_kind["StateDStream"])
    paid = floodmark.read_state(place, operator=by_kind["StateDStream"], trust=True)
    assert {row["key"]["key"]: row["value"] for row in paid.rows()} == {
        "c1": {"orders": 2, "cents": 8},
        "c2": {"orders": 1, "cents": 7},
    }
    mapped = floodmark.read_state(
        place, operator=by_kind["InternalMapWithStateDStream"], trust=True
    )
    assert {row["key"]["key"]: row["value"] for row in mapped.rows()} == {
        "c1": {"value": 8},
        "c2": {"value": 7},
    }
    asked = floodmark.inspect(place, trust=True).dstreams
    assert asked is not None
    assert asked.spark is not None
    assert asked.spark.restart_file == found.restart_file
