"""Which jars are chosen, and that Ivy really brings them: from a repository on this disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from floodmark.engine.spark import ivy
from floodmark.engine.spark import jars as connectors
from floodmark.errors import FloodmarkError, WrongUse
from ports import nobody_listens

Repository = Callable[..., Path]

LIBRARY = "org.example:library:1.0"
OTHER = "org.example.deep:other_2.13:2.0"


@pytest.fixture(autouse=True)
def _a_home_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("FLOODMARK_CACHE", "FLOODMARK_IVY_SETTINGS", "DEFAULT_ARTIFACT_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    # The session that tests share may run already, and has the connectors.
    monkeypatch.setattr("pyspark.SparkContext._jvm", None)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Makes a repository in Maven's layout that holds the coordinates, and no poms."""

    def make(*coordinates: str) -> Path:
        root = tmp_path / "repository"
        for coordinate in coordinates:
            organisation, module, revision = coordinate.split(":")
            folder = root.joinpath(*organisation.split("."), module, revision)
            folder.mkdir(parents=True)
            (folder / f"{module}-{revision}.jar").write_bytes(coordinate.encode())
        root.mkdir(exist_ok=True)
        return root

    return make


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A Spark that is only names of jars."""

    def make(*jars: str) -> Path:
        home = tmp_path / "spark"
        (home / "jars").mkdir(parents=True)
        for jar in jars:
            (home / "jars" / jar).touch()
        monkeypatch.setenv("SPARK_HOME", str(home))
        return home

    return make


# Which jars


def test_s3_is_reached_with_the_client_of_sparks_own_hadoop(
    spark_home: Callable[..., Path],
) -> None:
    found = connectors.coordinates("s3", "4.2.0")
    hadoop = next((ivy.spark_home() / "jars").glob("hadoop-client-api-*.jar")).stem
    assert found[0].split(":")[1:] == ["hadoop-aws", hadoop.rpartition("-")[2]]
    assert any("spark-hadoop-cloud_2.13" in one for one in found)
    # Other lines have another Hadoop: what to name is said.
    with pytest.raises(FloodmarkError, match=r"Spark 4\.0\.1 reaches S3") as refused:
        connectors.coordinates("s3", "4.0.1")
    assert "spark.jars.packages=org.apache.hadoop:hadoop-aws:" in refused.value.do
    home = spark_home("spark-core_2.13-4.2.0.jar", "hadoop-aws-3.5.0.jar")
    assert home.exists()
    assert connectors.needed(["s3"], {}) == []


@pytest.mark.parametrize(
    ("spark", "kafka", "delta"),
    [
        ("3.5.9", "spark-sql-kafka-0-10_2.12:3.5.", "delta-spark_2.12:3.3."),
        ("4.0.0", "spark-sql-kafka-0-10_2.13:4.0.", "delta-spark_4.0_2.13:"),
        ("4.1.4", "spark-sql-kafka-0-10_2.13:4.1.", "delta-spark_4.1_2.13:"),
        ("4.2.0-SNAPSHOT", "spark-sql-kafka-0-10_2.13:4.2.", "delta-spark_4.2_2.13:"),
    ],
)
def test_a_line_of_spark_has_its_own_release(spark: str, kafka: str, delta: str) -> None:
    assert connectors.coordinates("kafka", spark)[0].startswith(f"org.apache.spark:{kafka}")
    assert connectors.coordinates("delta", spark)[0].startswith(f"io.delta:{delta}")


def test_the_jars_that_spark_has_tell_version_and_scala(spark_home: Callable[..., Path]) -> None:
    spark_home("spark-core_2.13-3.5.4.jar", "scala-library-2.13.8.jar")

    assert connectors.coordinates("delta")[0] == "io.delta:delta-spark_2.13:3.3.3"


@pytest.mark.parametrize(
    ("connector", "spark", "says"),
    [
        ("kafka", "3.4.1", "3.5 to 4.3"),
        ("kafka", "5.0.0", "3.5 to 4.3"),
        ("kafka", "newest", "3.5 to 4.3"),
        ("delta", "4.3.0", "3.5 to 4.2"),
    ],
)
def test_a_spark_without_a_connector_is_named(connector: str, spark: str, says: str) -> None:
    with pytest.raises(FloodmarkError) as error:
        connectors.coordinates(connector, spark)

    assert spark in error.value.what
    assert says in error.value.why
    assert "spark.jars.packages" in error.value.do


def test_an_unknown_connector_is_wrong_use() -> None:
    with pytest.raises(WrongUse, match="no connector named 'pulsar'"):
        connectors.resolve("pulsar")


def test_choosing_jars_does_not_import_pyspark() -> None:
    script = (
        "import sys; from floodmark.engine.spark import jars as connectors;"
        "connectors.coordinates('kafka'); print('pyspark' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said.stdout == "False\n", said.stderr


def test_without_a_whole_spark_the_error_says_where_it_looked(
    spark_home: Callable[..., Path],
) -> None:
    home = spark_home()

    with pytest.raises(FloodmarkError) as error:
        connectors.resolve("kafka")

    assert str(home) in error.value.what


# Whose jars


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.jars.packages": "a:b:1,io.delta:delta-spark_2.13:4.0.0"},
        {"spark.jars": "/opt/delta-storage-4.jar,/opt/delta-spark_4.2_2.13-4.4.0.jar"},
        {"spark.driver.extraClassPath": "/opt/x.jar:/opt/delta-spark_2.12-3.3.0.jar"},
    ],
)
def test_a_user_who_names_the_connector_keeps_it(conf: dict[str, str]) -> None:
    assert connectors.needed(["delta"], conf) == []


def test_a_connector_among_sparks_own_jars_is_enough(spark_home: Callable[..., Path]) -> None:
    spark_home("spark-core_2.13-4.2.0.jar", "spark-sql-kafka-0-10_2.13-4.2.0.jar")

    assert connectors.needed(["kafka"], {}) == []


def test_a_class_path_may_name_a_whole_folder(tmp_path: Path) -> None:
    (tmp_path / "delta-spark_4.2_2.13-4.4.0.jar").touch()

    assert connectors.needed(["delta"], {"spark.driver.extraClassPath": f"{tmp_path}/*"}) == []


def test_spark_defaults_and_submit_arguments_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\n\nspark.jars.packages   io.delta:delta-spark_4.2_2.13:4.4.0\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv(
        "PYSPARK_SUBMIT_ARGS",
        "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 pyspark-shell",
    )

    assert connectors.needed(["kafka", "delta"], {}) == []


def test_jars_for_something_else_do_not_count(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOODMARK_CACHE", str(tmp_path / "cache"))
    root = repository(*connectors.coordinates("delta"))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", root.as_uri())

    jars = connectors.needed(["delta"], {"spark.jars": "/opt/delta-sharing.jar"})

    version = ivy.installed_spark().version
    assert {jar.parent for jar in jars} == {tmp_path / "cache" / "jars" / version / "delta"}
    assert len(jars) == len(connectors.coordinates("delta"))


# Fetching


def test_exactly_the_named_jars_come_and_a_second_time_needs_nothing(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(LIBRARY, OTHER)
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", root.as_uri())
    folder = tmp_path / "jars"

    jars = ivy.retrieve([LIBRARY, OTHER], folder)

    assert [jar.read_bytes().decode() for jar in jars] == [LIBRARY, OTHER]
    assert sorted(folder.iterdir()) == sorted(jars)
    monkeypatch.setenv("JAVA_HOME", os.devnull)
    assert ivy.retrieve([LIBRARY, OTHER], folder) == jars


def test_only_what_is_missing_is_fetched(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", repository(OTHER).as_uri())
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "library-1.0.jar").write_bytes(b"here before")

    library, other = ivy.retrieve([LIBRARY, OTHER], tmp_path / "jars")

    assert library.read_bytes() == b"here before"
    assert other.read_bytes() == OTHER.encode()


def test_an_artefact_that_is_not_there_is_named_and_nothing_is_kept(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", repository(LIBRARY).as_uri())

    with pytest.raises(FloodmarkError) as error:
        ivy.retrieve([LIBRARY, OTHER], tmp_path / "jars")

    assert error.value.what == f"could not fetch {OTHER}"
    assert "no such artefact" in error.value.why
    assert "FLOODMARK_IVY_SETTINGS" in error.value.do
    assert list((tmp_path / "jars").iterdir()) == []


def test_a_registry_out_of_reach_is_told_from_a_missing_artefact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nobody_listens() as port:
        monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", f"http://127.0.0.1:{port}/")
        with pytest.raises(FloodmarkError) as error:
            ivy.retrieve([LIBRARY], tmp_path / "jars")

    assert LIBRARY in error.value.what
    assert "could not be reached" in error.value.why
    assert str(port) in error.value.why


def test_mavens_mirror_stands_in_for_maven_central(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIRROR", repository(LIBRARY).as_uri())
    (tmp_path / "home" / ".m2").mkdir(parents=True)
    (tmp_path / "home" / ".m2" / "settings.xml").write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors>'
        "<mirror><mirrorOf>*,!central</mirrorOf><url>file:///nowhere</url></mirror>"
        "<mirror><mirrorOf>other</mirrorOf><url>file:///nowhere</url></mirror>"
        "<mirror><mirrorOf>other, central</mirrorOf><url>${env.MIRROR}</url></mirror>"
        "</mirrors></settings>"
    )

    (jar,) = ivy.retrieve([LIBRARY], tmp_path / "jars")

    assert jar.read_bytes() == LIBRARY.encode()


@pytest.mark.parametrize("told_by", ["FLOODMARK_IVY_SETTINGS", "spark.jars.ivySettings"])
def test_ivy_settings_of_the_users_own_win(
    told_by: str, tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinates = connectors.coordinates("kafka")
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="mine"/><resolvers>'
        f'<ibiblio name="mine" m2compatible="true" root="{repository(*coordinates).as_uri()}"/>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("FLOODMARK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "file:///nowhere")
    conf = {}
    if told_by.isupper():
        monkeypatch.setenv(told_by, str(settings))
    else:
        conf = {told_by: str(settings)}

    jars = connectors.needed(["kafka"], conf)

    assert [jar.read_bytes().decode() for jar in jars] == list(coordinates)


def test_ivy_settings_that_are_not_there_are_wrong_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOODMARK_IVY_SETTINGS", str(tmp_path / "missing.xml"))

    with pytest.raises(WrongUse, match=r"no Ivy settings at .*missing\.xml"):
        ivy.retrieve([LIBRARY], tmp_path / "jars")


def test_ivy_settings_that_are_not_xml_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.xml").write_text("not xml")
    monkeypatch.setenv("FLOODMARK_IVY_SETTINGS", str(tmp_path / "broken.xml"))

    with pytest.raises(FloodmarkError) as error:
        ivy.retrieve([LIBRARY], tmp_path / "jars")

    assert "broken.xml" in error.value.why


def test_without_java_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(FloodmarkError, match="no Java on this machine's PATH"):
        ivy.retrieve([LIBRARY], tmp_path / "jars")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(FloodmarkError) as error:
        ivy.retrieve([LIBRARY], tmp_path / "file" / "jars")

    assert str(tmp_path / "file" / "jars") in error.value.what
    assert "FLOODMARK_CACHE" in error.value.do


def test_two_processes_at_once_both_get_whole_jars(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", repository(LIBRARY, OTHER).as_uri())
    script = (
        "import sys; from pathlib import Path; from floodmark.engine.spark import ivy;"
        "jars = ivy.retrieve(sys.argv[2:], Path(sys.argv[1]));"
        "print(*(jar.read_text() for jar in jars))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "jars"), LIBRARY, OTHER]

    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    for one in both:
        said, problem = one.communicate(timeout=120)
        assert said == f"{LIBRARY} {OTHER}\n", problem
    assert len(list((tmp_path / "jars").iterdir())) == 2
