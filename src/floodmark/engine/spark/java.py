"""Finds and checks the Java that Spark would start, without starting it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from floodmark.errors import WrongUse

_VERSION = re.compile(r'version "(?P<version>[^"]+)"')
_RELEASE = re.compile(r'^(?P<key>\w+)="(?P<value>[^"]*)"', re.MULTILINE)
# Spark 4 passes --add-modules=jdk.incubator.vector, which a reduced runtime does not have.
_VECTOR = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    command: str
    major: int
    modules: frozenset[str]
    """The runtime's modules; empty where it does not list them."""


def find_java() -> Java:
    command = _command()
    release = Path(command).resolve().parent.parent / "release"
    try:
        fields = dict(_RELEASE.findall(release.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        fields = {}
    version = fields.get("JAVA_VERSION") or _asked(command)
    return Java(command, major_of(version), frozenset(fields.get("MODULES", "").split()))


def _command() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        command = Path(home) / "bin" / "java"
        if not command.exists():
            raise WrongUse(
                f"JAVA_HOME is {home}, but it has no bin/java",
                "Spark starts the Java that JAVA_HOME names.",
                "Correct JAVA_HOME, or unset it to use the java on the PATH.",
            )
        return str(command)
    found = shutil.which("java")
    if found is None:
        raise WrongUse(
            "Java is not installed, or not on the PATH",
            "Spark needs Java; reading a checkpoint does not.",
            "Install Java 17, for example: apt install openjdk-17-jre-headless",
        )
    return found


def _asked(command: str) -> str:
    try:
        answer = subprocess.run(  # nosec B603 # the Java that the user has chosen
            [command, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WrongUse(f"{command} does not run: {error}", do="Install Java 17.") from None
    found = _VERSION.search(answer.stderr + answer.stdout)
    return found["version"] if found else "0"


def major_of(version: str) -> int:
    """Return 17 for 17.0.15, and 8 for 1.8.0_392."""
    numbers = re.findall(r"\d+", version) or ["0"]
    return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])


def require_java(spark_version: str) -> Java:
    """Refuse a Java on which this Spark cannot start."""
    java = find_java()
    spark_major = int(spark_version.partition(".")[0])
    needed = 17 if spark_major >= 4 else 8
    if java.major < needed:
        raise WrongUse(
            f"Java {java.major} is too old: Spark {spark_version} needs Java {needed} or later",
            f"It was found at {java.command}.",
            "Install Java 17 and set JAVA_HOME to it.",
        )
    if spark_major >= 4 and java.modules and _VECTOR not in java.modules:
        raise WrongUse(
            f"the Java at {java.command} has no module {_VECTOR}, which Spark {spark_version} "
            "starts with",
            "It is a reduced runtime.",
            "Install a full Java 17, for example: apt install openjdk-17-jre-headless",
        )
    return java
