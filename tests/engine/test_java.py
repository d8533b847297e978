"""Which Java Spark would start, and whether it can."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from floodmark.engine.spark.java import find_java, major_of, require_java
from floodmark.engine.spark.jvm import few_batches_jvm, short_lived_jvm
from floodmark.errors import WrongUse

VECTOR = "java.base jdk.incubator.vector"


def fake_java(folder: Path, version: str, modules: str = VECTOR) -> Path:
    (folder / "bin").mkdir(parents=True)
    command = folder / "bin" / "java"
    command.write_text("#!/bin/sh\nexit 1\n")
    command.chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("", 0)]
)
def test_major_versions(version: str, major: int) -> None:
    assert major_of(version) == major


def test_java_home_is_the_java_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "21.0.2")))
    found = find_java()
    assert found.major == 21
    assert found.command == str(tmp_path / "jdk" / "bin" / "java")


def test_a_java_home_with_no_java_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(WrongUse, match="no bin/java"):
        require_java("4.2.0")


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WrongUse, match="Java is not installed"):
        require_java("4.2.0")


def test_a_java_that_is_too_old_for_this_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "11.0.2")))
    with pytest.raises(WrongUse, match=r"Java 11 is too old: Spark 4\.2\.0 needs Java 17"):
        require_java("4.2.0")
    assert require_java("3.5.9").major == 11


def test_a_cut_down_java_cannot_start_spark_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "17.0.1", "java.base")))
    with pytest.raises(WrongUse, match=r"jdk\.incubator\.vector"):
        require_java("4.2.0")


def test_a_short_lived_jvm_compiles_lightly_and_the_users_options_win(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=4")
    monkeypatch.delenv("SPARK_LAUNCHER_OPTS", raising=False)
    with short_lived_jvm():
        assert os.environ["SPARK_SUBMIT_OPTS"] == "-XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4"
        assert os.environ["SPARK_LAUNCHER_OPTS"] == "-XX:TieredStopAtLevel=1"
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-XX:TieredStopAtLevel=4"
    assert "SPARK_LAUNCHER_OPTS" not in os.environ


def test_a_jvm_for_a_few_batches_still_optimizes_hot_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    monkeypatch.delenv("SPARK_LAUNCHER_OPTS", raising=False)
    with few_batches_jvm():
        *ours, users = os.environ["SPARK_SUBMIT_OPTS"].split()
        launcher = os.environ["SPARK_LAUNCHER_OPTS"]
    assert users == "-Dmine=1"
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dmine=1"
    assert "SPARK_LAUNCHER_OPTS" not in os.environ
    assert launcher == "-XX:TieredStopAtLevel=1"
    assert not any("TieredStopAtLevel" in one for one in ours)
    # This Java knows each of them, and the optimizing compiler is only later than by default.
    before, after = (_java_flags(options) for options in ([], ours))
    for one in ours:
        name = one.removeprefix("-XX:").partition("=")[0]
        assert after[name] > before[name] > 0, name


def _java_flags(options: list[str]) -> dict[str, int]:
    told = subprocess.run(
        ["java", *options, "-XX:+PrintFlagsFinal", "-version"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    words = (line.split() for line in told.splitlines())
    return {one[1]: int(one[3]) for one in words if len(one) > 3 and one[3].isdecimal()}
