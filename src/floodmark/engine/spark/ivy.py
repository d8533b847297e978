"""Fetches jars with Spark's own Ivy: only the named jars, from the user's registry to a folder.

The user chooses the registry: their Ivy settings come first, then what Spark or Maven uses
instead of Maven Central, then Ivy's own default.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree  # nosec B405 # for the user's own Maven settings alone

from floodmark.errors import FloodmarkError, WrongUse, no_pyspark


@dataclass(frozen=True)
class InstalledSpark:
    """The Spark that a session of this process would start, described by its jars."""

    jars: Path
    version: str
    scala: str

    @property
    def ivy(self) -> Path:
        for jar in sorted(self.jars.glob("ivy-*.jar")):
            return jar
        raise FloodmarkError(
            f"no ivy-*.jar in {self.jars}",
            "floodmark fetches connectors with the Ivy that ships with Spark.",
            "Install pyspark from PyPI, or name the connector's jars in spark.jars.",
        )


def installed_spark() -> InstalledSpark:
    """Find Spark by its files: importing pyspark takes a second and is not needed."""
    home = spark_home()
    for jar in sorted((home / "jars").glob("spark-core_*.jar")):
        match = re.fullmatch(r"spark-core_(\d+\.\d+)-(.+)\.jar", jar.name)
        if match:
            return InstalledSpark(home / "jars", match[2], match[1])
    raise FloodmarkError(
        f"no Spark in {home}",
        "Its jars folder holds no spark-core jar.",
        "Unset SPARK_HOME or name a complete Spark; pip install 'floodmark[spark]' brings one.",
    )


def spark_home() -> Path:
    # The same order as pyspark's own: SPARK_HOME first, then the package.
    chosen = os.environ.get("SPARK_HOME")
    if chosen:
        return Path(chosen)
    package = importlib.util.find_spec("pyspark")
    if package is None or not package.submodule_search_locations:
        raise no_pyspark()
    return Path(next(iter(package.submodule_search_locations)))


def retrieve(
    coordinates: Iterable[str],
    folder: Path,
    *,
    label: str = "jars",
    ivy_settings: str | None = None,
) -> tuple[Path, ...]:
    """Return exactly these jars in `folder`, without dependencies; existing jars need no network.

    A jar's name contains its release, so an existing jar is the right one. New jars come into a
    folder beside and are moved one by one when all have come. So a killed run leaves no half jar,
    and two runs at the same time only write the same bytes twice.
    """
    wanted = {coordinate: folder / _jar_name(coordinate) for coordinate in coordinates}
    missing = [coordinate for coordinate, jar in wanted.items() if not jar.is_file()]
    if missing:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as beside:
                _download(missing, Path(beside), label, ivy_settings)
                for coordinate in missing:
                    (Path(beside) / "jars" / _jar_name(coordinate)).replace(wanted[coordinate])
        except OSError as error:
            raise FloodmarkError(
                f"cannot keep {label} in {folder}",
                str(error),
                "Set FLOODMARK_CACHE to a folder that you may write to.",
            ) from error
    return tuple(wanted.values())


def _jar_name(coordinate: str) -> str:
    _, module, revision = coordinate.split(":")
    return f"{module}-{revision}.jar"


def _download(missing: list[str], work: Path, label: str, ivy_settings: str | None) -> None:
    """Run Ivy with a cache of its own: two processes cannot safely share the user's."""
    (work / "ivy.xml").write_text(_ivy_module(missing), encoding="utf-8")
    command = [
        _java(),
        "-jar",
        str(installed_spark().ivy),
        *("-settings", _settings(work, ivy_settings)),
        *("-cache", str(work / "cache")),
        *("-ivy", str(work / "ivy.xml")),
        *("-retrieve", f"{work}/jars/[artifact]-[revision].[ext]"),
    ]
    said: list[str] = []
    with (
        _progress(label, len(missing)) as progress,
        subprocess.Popen(  # nosec B603 # our own command, without a shell
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as ivy,
    ):
        assert ivy.stdout is not None
        try:
            for line in ivy.stdout:
                said.append(line)
                if "[SUCCESSFUL ]" in line:
                    progress.advance()
        except BaseException:
            ivy.kill()
            raise
    absent = [one for one in missing if not (work / "jars" / _jar_name(one)).is_file()]
    if absent:
        raise _not_fetched(absent, "".join(said))


def _ivy_module(missing: Iterable[str]) -> str:
    module = ElementTree.Element("ivy-module", version="2.0")
    ElementTree.SubElement(module, "info", organisation="floodmark", module="connectors")
    ElementTree.SubElement(ElementTree.SubElement(module, "configurations"), "conf", name="default")
    dependencies = ElementTree.SubElement(module, "dependencies")
    for coordinate in missing:
        organisation, name, revision = coordinate.split(":")
        # 'master' is a pom's name for the module's own jar; without a pom there is only
        # 'default'. The artifact is named, or its sources and documentation would come too.
        dependency = ElementTree.SubElement(
            dependencies,
            "dependency",
            {
                "org": organisation,
                "name": name,
                "rev": revision,
                "transitive": "false",
                "conf": "default->master(default)",
            },
        )
        ElementTree.SubElement(dependency, "artifact", name=name, type="jar", ext="jar")
    return ElementTree.tostring(module, encoding="unicode")


def _settings(work: Path, chosen: str | None) -> str:
    chosen = os.environ.get("FLOODMARK_IVY_SETTINGS") or chosen
    if chosen:
        if "://" not in chosen and not Path(chosen).is_file():
            raise WrongUse(
                f"no Ivy settings at {chosen}",
                "FLOODMARK_IVY_SETTINGS or spark.jars.ivySettings names this file.",
                "Correct the path, or unset it to use Maven's mirror or Maven Central.",
            )
        return chosen
    path = work / "ivysettings.xml"
    path.write_text(_ivy_settings(_repository()), encoding="utf-8")
    return str(path)


def _ivy_settings(root: str | None) -> str:
    """Return settings for one repository in Maven's layout; by default that is Maven Central."""
    settings = ElementTree.Element("ivysettings")
    ElementTree.SubElement(settings, "settings", defaultResolver="repository")
    # Ivy has no timeout by default; a registry that does not answer must become an error.
    ElementTree.SubElement(
        ElementTree.SubElement(settings, "timeout-constraints"),
        "timeout-constraint",
        name="limited",
        connectionTimeout="10000",
        readTimeout="60000",
    )
    # No poms: the lists are complete, and each pom would fetch its parents.
    attributes = {
        "name": "repository",
        "m2compatible": "true",
        "usepoms": "false",
        "timeoutConstraint": "limited",
    }
    if root:
        attributes["root"] = root
    ElementTree.SubElement(ElementTree.SubElement(settings, "resolvers"), "ibiblio", attributes)
    return ElementTree.tostring(settings, encoding="unicode")


def _repository() -> str | None:
    """Return the repository that replaces Maven Central in Spark's settings, or else in Maven's."""
    return os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or _maven_mirror(
        Path.home() / ".m2" / "settings.xml"
    )


def _maven_mirror(path: Path) -> str | None:
    try:
        root = ElementTree.parse(path).getroot()  # nosec B314 # the user's own Maven settings
    except (OSError, ElementTree.ParseError):
        return None
    for mirror in root.findall("{*}mirrors/{*}mirror"):
        of = [token.strip() for token in (mirror.findtext("{*}mirrorOf") or "").split(",")]
        url = (mirror.findtext("{*}url") or "").strip()
        if url and "!central" not in of and {"central", "*", "external:*"} & set(of):
            return re.sub(r"\$\{env\.(\w+)\}", lambda name: os.environ.get(name[1], ""), url)
    return None


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        raise FloodmarkError(
            f"no Java in JAVA_HOME ({home})" if home else "no Java on this machine's PATH",
            "Spark and its connectors run on Java 17 or later.",
            "Install a JDK, or set JAVA_HOME to one.",
        )
    return java


def _not_fetched(absent: list[str], said: str) -> FloodmarkError:
    crash = re.search(r'Exception in thread "main" [\w.$]+: (.*)', said)
    unreachable = re.search(
        r"Server access error at url .*|Host .* not found\.|SERVER ERROR.*", said
    )
    if crash:
        why = f"Ivy stopped: {crash[1]}"
    elif unreachable:
        why = f"The registry could not be reached: {unreachable[0]}"
    else:
        why = "The registry has no such artefact, or needs a login; a mirror may be out of date."
    # Ivy fetches all or none: if it names the missing jars, the others are not the cause.
    blamed = [one for one in absent if "{}#{};{}: not found".format(*one.split(":")) in said]
    return FloodmarkError(
        f"could not fetch {', '.join(blamed or absent)}",
        why,
        "Try again with a network, set FLOODMARK_IVY_SETTINGS to Ivy settings for your "
        "registry, or name your own jars in spark.jars.",
    )


class _Progress(Protocol):
    def advance(self) -> None: ...


class _Silent:
    def advance(self) -> None:
        pass


@contextmanager
def _progress(label: str, total: int) -> Iterator[_Progress]:
    if not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(label, total=total)

        class Bar:
            def advance(self) -> None:
                bars.advance(task)

        yield Bar()
