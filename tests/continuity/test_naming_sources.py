"""Sources that `convert --name` has named: Spark goes on with them in any order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from named_sources import CONNECTED, SCENARIOS, NamedScenario, run_named
from test_continuity import HERE, ROOT, SPARKS

from floodmark.engine.spark.jars import resolve
from other_spark import packages

if TYPE_CHECKING:
    from services.kafka import KafkaServer

QUICK = [one for one in SCENARIOS if one.quick]


@pytest.mark.spark
@pytest.mark.parametrize("one", QUICK, ids=lambda one: one.name)
def test_named_sources_go_on(spark: Any, one: NamedScenario, tmp_path: Path) -> None:
    """Spark 4.2 has the log and the names as well; 4.3, whose feature it is, is below."""
    assert run_named(spark.newSession(), one, tmp_path / "run") == []


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ["4.2.0", "4.3.0"])
def test_every_naming(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_all(version, SCENARIOS, tmp_path, capsys)


@pytest.mark.soak
@pytest.mark.services
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("version", "connectors"), [("4.2.0", "kafka delta"), ("4.3.0", "kafka")])
def test_naming_of_kafka_and_delta(
    version: str,
    connectors: str,
    kafka: KafkaServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """There is no Delta for Spark 4.3; its Kafka is the connector of 4.2."""
    there = connectors.split()
    chosen = [one for one in CONNECTED if one.connectors <= set(there)]
    jars = ",".join(str(jar) for name in there for jar in resolve(name, version))
    names = [f"{at}-{source}" for at, one in enumerate(chosen) for source in one.kafka]
    topics = json.dumps({name: kafka.create_topic(name) for name in names})
    servers = {"KAFKA": kafka.bootstrap, "TOPICS": topics, "CONNECTORS": jars}
    run_all(version, chosen, tmp_path, capsys, **servers)


def run_all(
    version: str,
    scenarios: Sequence[NamedScenario],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    **more: str,
) -> None:
    python = sys.executable if version == "4.2.0" else str(SPARKS / version / "bin" / "python")
    if not Path(python).exists():
        pytest.skip(f"Spark {version} is not here")
    paths = [ROOT / "src", *([packages(tmp_path / "packages")] if version != "4.2.0" else [])]
    done = subprocess.run(
        [python, str(HERE / "named_sources.py"), str(tmp_path), *(one.name for one in scenarios)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **more},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    wrong = {one["name"]: one["wrong"] for one in outcomes if one["wrong"]}
    with capsys.disabled():
        print(f"\nSpark {version}: {len(outcomes)} streams with named sources, {len(wrong)} wrong")
    assert wrong == {}
    assert len(outcomes) == len(scenarios)
