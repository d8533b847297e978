"""What tests ask for by name: real servers and a Spark session, begun when first asked.

Each lives as long as the test process. What a server needs is fetched by
scripts/services.py when it is not there yet, so that `pytest` alone is enough.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from project_scripts import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from demonstration import Demo
    from services.cluster import SparkCluster
    from services.emulators import Azurite, FakeGcs
    from services.hdfs import HdfsServer
    from services.kafka import KafkaServer
    from services.postgres import PostgresServer
    from services.s3 import S3Server

ROOT = Path(__file__).resolve().parents[1]

# `services` is a folder beside this file, whichever way pytest was told to import.
sys.path.insert(0, str(Path(__file__).parent))

# Property tests are about what comes out; how fast a busy machine is says nothing.
settings.register_profile("floodmark", deadline=None)
settings.load_profile("floodmark")


@pytest.fixture(autouse=True)
def quiet(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No query may be running on what a test has just written, unless it is about that."""
    if "doubts" not in request.keywords:
        monkeypatch.setattr("floodmark.changes.in_use.maybe_running", lambda *_: None)


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets that one test gives are not the next one's."""
    from floodmark import secret_text

    monkeypatch.setattr(secret_text, "_known", {})
    secret_text._known_values.cache_clear()


@pytest.fixture(scope="session")
def fetched() -> ModuleType:
    """scripts/services.py, whose functions fetch what they return."""
    return script("services", "floodmark_services_script")


@pytest.fixture(scope="session")
def kafka(fetched: ModuleType) -> Iterator[KafkaServer]:
    from services.kafka import KafkaServer

    with KafkaServer(fetched.kafka_broker()) as server:
        yield server


@pytest.fixture(scope="session")
def s3(fetched: ModuleType) -> Iterator[S3Server]:
    from services.s3 import S3Server

    with S3Server(fetched.s3_server()) as server:
        yield server


@pytest.fixture(scope="session")
def azurite(fetched: ModuleType) -> Iterator[Azurite]:
    pytest.importorskip("adlfs", reason="pip install adlfs, which reads Azure's storage")
    from services.emulators import Azurite

    with Azurite(fetched.azurite()) as server:
        yield server


@pytest.fixture(scope="session")
def gcs(fetched: ModuleType) -> Iterator[FakeGcs]:
    # Without this gcsfs asks Google itself about the bucket, whatever the endpoint.
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    pytest.importorskip("gcsfs", reason="pip install gcsfs, which reads Google's storage")
    from services.emulators import FakeGcs

    with FakeGcs(fetched.fake_gcs()) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(fetched: ModuleType) -> Iterator[HdfsServer]:
    from services.hdfs import HdfsServer

    with HdfsServer(fetched.hdfs_server()) as server:
        yield server


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[SparkCluster]:
    from services.cluster import SparkCluster

    with SparkCluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: SparkCluster) -> SparkCluster:
    """A master and two workers; whichever a test has killed is there again for the next."""
    shared_cluster.renew()
    return shared_cluster


@pytest.fixture(scope="session")
def postgres(fetched: ModuleType) -> Iterator[PostgresServer]:
    from services.postgres import PostgresServer

    with PostgresServer(fetched.postgres_programs()) as server:
        yield server


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """One demonstration for all: it starts Spark three times."""
    from demonstration import run_demo

    return run_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def spark(fetched: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all: two cores, Kafka and Delta, nothing written into the checkout."""
    from pyspark.sql import SparkSession

    from quiet_log import QUIET

    folder = tmp_path_factory.mktemp("spark")
    (folder / "log4j2.properties").write_text(QUIET)
    java_options = (
        f"-Dlog4j2.configurationFile={folder}/log4j2.properties -Dderby.system.home={folder}"
    )
    conf = {
        "spark.master": "local[2]",
        "spark.app.name": "floodmark-tests",
        "spark.jars": ",".join(str(jar) for jar in fetched.spark_connectors()),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": java_options,
        "spark.local.dir": str(folder / "local"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # 50 tasks for a log of one file otherwise.
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    # Spark's workers must be this Python, whatever `python3` is on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
