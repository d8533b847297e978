"""Makes the checkpoints of tests/golden with real Sparks: `python scripts/make_golden.py`.

Every Spark version runs the scenarios of `scripts/golden` in one fixed folder under /tmp,
with this package and its own Python linked there, so that no path of a checkout gets into
a checkpoint. What a version made replaces what was kept of it before.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

REPOSITORY = Path(__file__).resolve().parent.parent
SPARKS = REPOSITORY / ".cache" / "sparks"
GOLDEN = REPOSITORY / "tests" / "golden"
ROOT = Path("/tmp/floodmark-golden")
KEPT = ROOT / "kept"

# pyspark → the protobuf that its generated code (transformWithState's) asks for.
PROTOBUF = {"3.5.9": "", "4.0.5": "5.28.3", "4.1.4": "6.33.0", "4.2.0": "6.33.5", "4.3.0": "6.33.5"}
STATE_READER = "4.2.0"
CONNECTED = "4.2.0"
CONNECTED_SCENARIOS = {"kafka", "delta", "delta-mid-version"}
ICEBERG, ICEBERG_SCENARIO = "4.1.4", "iceberg"
ALONE = {"4.0.5": {"sales-format-2-alone"}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", action="append", choices=PROTOBUF, help="only this version")
    parser.add_argument("scenario", nargs="*", help="only these scenarios")
    arguments = parser.parse_args()
    failed = [
        version for version in arguments.spark or PROTOBUF if not make(version, arguments.scenario)
    ]
    if failed:
        print(f"not everything was made by {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def make(version: str, scenarios: list[str]) -> bool:
    """All scenarios of one Spark; what succeeded is kept even where another failed."""
    shutil.rmtree(ROOT, ignore_errors=True)
    shutil.copytree(REPOSITORY / "scripts" / "golden", ROOT / "scripts" / "golden")
    KEPT.mkdir()
    done = _run_scenarios(version, scenarios)
    # What failed midway has a checkpoint and no word of the engine: it is not kept.
    for made in sorted(told.parent for told in KEPT.glob("*/expected.json")):
        _refuse_local_paths(made)
        target = GOLDEN / version.rpartition(".")[0] / made.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)
    return done


def _run_scenarios(version: str, scenarios: list[str]) -> bool:
    alone = sorted(ALONE.get(version, set()))
    together = [name for name in scenarios if name not in _elsewhere(alone)]
    done = True
    if not scenarios or any(name.startswith("in-flight") for name in scenarios):
        _python(version, "scripts.golden.killed")  # ends itself by SIGKILL
    if together or not scenarios:
        done = _python(version, "scripts.golden.run", *together)
    for name in alone:
        if name in scenarios or not scenarios:
            done = _python(version, "scripts.golden.run", name) and done
    if version == CONNECTED and (not scenarios or CONNECTED_SCENARIOS & set(scenarios)):
        done = _connected(version) and done
    if version == ICEBERG and (not scenarios or ICEBERG_SCENARIO in scenarios):
        jars = ",".join(str(jar) for jar in _own("scripts.services").iceberg_connector())
        done = _python(version, "scripts.golden.iceberg", jars) and done
    if version < STATE_READER:
        done = _python(STATE_READER, "scripts.golden.late_reader") and done
    return done


def _elsewhere(alone: list[str]) -> set[str]:
    return {*alone, *CONNECTED_SCENARIOS, ICEBERG_SCENARIO}


def _own(module: str) -> ModuleType:
    # `services` is to be the tests' package, not the script of that name beside this one.
    if str(REPOSITORY) not in sys.path:
        sys.path[:1] = [str(REPOSITORY), str(REPOSITORY / "tests")]
    return import_module(module)


def _connected(version: str) -> bool:
    """Kafka and Delta, with the jars that floodmark pins and the tests' own broker."""
    connectors = _own("floodmark.engine.spark.jars")
    jars = [jar for name in ("kafka", "delta") for jar in connectors.resolve(name, version)]
    broker = _own("services.kafka").KafkaServer(_own("scripts.services").kafka_broker())
    with broker:
        topics = [broker.create_topic("orders", 2), broker.create_topic("clicks", 1)]
        paths = ",".join(str(jar) for jar in jars)
        return _python(version, "scripts.golden.connected", paths, broker.bootstrap, *topics)


def _python(version: str, module: str, *arguments: str) -> bool:
    """Run a module with a Spark's own Python, everything seen through the neutral folder."""
    link = ROOT / "spark"
    link.unlink(missing_ok=True)
    link.symlink_to(home_of(version), target_is_directory=True)
    pyspark = next(link.glob("lib/python3.*/site-packages/pyspark"))
    python = str(link / "bin" / "python")
    settings = {
        "SPARK_HOME": str(pyspark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": python,
        "PYTHONWARNINGS": "ignore",
    }
    inherited = {key: os.environ[key] for key in ("PATH", "HOME", "JAVA_HOME") if key in os.environ}
    command = [python, "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, env=inherited | settings, check=False).returncode == 0


def home_of(version: str) -> Path:
    """The environment that has this Spark: this one, or one of its own that is made on demand."""
    if metadata.version("pyspark") == version:
        return Path(sys.prefix)
    home = SPARKS / version
    if not (home / "bin" / "python").exists():
        print(f"making an environment for Spark {version}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        wanted = [f"pyspark=={version}", "pandas<3", "pyarrow", "setuptools"]
        if version.startswith("3."):
            # applyInPandasWithState cuts batches at floats, which newer Arrow does not take.
            wanted = [f"pyspark=={version}", "pandas<3", "pyarrow<15", "numpy<2", "setuptools"]
        if PROTOBUF[version]:
            wanted.append(f"protobuf=={PROTOBUF[version]}")
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *wanted], check=True)
    return home


def _refuse_local_paths(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and str(REPOSITORY).encode() in file.read_bytes():
            raise SystemExit(f"{file} holds a path of this checkout")


if __name__ == "__main__":
    raise SystemExit(main())
