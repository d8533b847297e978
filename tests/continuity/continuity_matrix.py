"""Runs scenarios: the old code over half of the input, `migrate`, the new code over the rest.

As a program it runs those for the Spark that runs it, and prints what became of each as JSON
lines: `continuity_matrix.py FOLDER [--every] [--scripts] [NAME…]`; --every: all that this Spark can
run; --scripts: a third of them, their code in plain scripts that floodmark never started.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scenarios import HDFS, ROCKSDB, Scenario, scenarios

SCHEMA = "id long, k string, city string, v long, w int, x double, d decimal(12,2), at timestamp"
_PROVIDERS = {
    HDFS: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    ROCKSDB: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
# Code that is generated for a dozen rows costs more than it saves.
_QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
EVERY, SCRIPTS = "--every", "--scripts"
_AT_ONCE = 3
# Spark gives a Python worker ten seconds to begin, whatever else the machine has to do: who
# comes too late is run again, alone.
_LATE = "Python worker failed to connect back"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_APP = """\
import continuity_matrix
from continuity_code import processor, total, total_and_last, total_from
from floodmark import pipeline
from pyspark.sql import functions as F


@pipeline(checkpoint={checkpoint!r}, name="stream")
def stream(spark, start):
    events = spark.readStream.schema({schema!r}).option("maxFilesPerTrigger", 1).json({source!r})
    rows = {code}
    return rows.writeStream.outputMode({mode!r}).foreachBatch(continuity_matrix.keeper({kept!r}))
"""
_SCRIPT = """\
import sys

import continuity_matrix
from continuity_code import processor, total, total_and_last, total_from
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate().newSession()
for key, value in {conf!r}.items():
    spark.conf.set(key, value)
events = spark.readStream.schema({schema!r}).option("maxFilesPerTrigger", 1).json({source!r})
rows = {code}
place = sys.argv[1] if len(sys.argv) > 1 else {checkpoint!r}
writer = rows.writeStream.outputMode({mode!r}).foreachBatch(continuity_matrix.keeper({kept!r}))
writer = writer.option("checkpointLocation", place).trigger(availableNow=True)
query = writer.start()
query.awaitTermination()
"""

# (k, city, v, w, x, minutes after ten): two files for the old code, one for the new. Nothing
# of the first half is so old at its end that a watermark of ten minutes would close it.
_FIRST = (
    (
        ("a", "x", 1, 1, 0.5, 0),
        ("b", "x", 2, 2, 1.5, 1),
        ("a", "y", 3, 1, 2.5, 2),
        ("c", "y", 4, 3, 3.5, 3),
    ),
    (
        ("a", "x", 5, 1, 4.5, 4),
        ("b", "y", 6, 2, 5.5, 5),
        ("c", "x", 7, 4, 6.5, 6),
        ("a", "y", 8, 5, 7.5, 7),
    ),
)
_SECOND = (
    ("a", "x", 9, 1, 8.5, 8),
    ("b", "z", 10, 6, 9.5, 9),
    ("d", "x", 11, 7, 10.5, 10),
    ("d", "y", 12, 2, 11.5, 11),
    ("a", "z", 13, 8, 12.5, 90),
)
_LONG_AGO = 1_700_000_000
_AGAIN = {(1, 0): 0, (2, 1): 1, (2, 3): 8}
"""(file, row) → the id that is there a second time."""

_KNOWN: dict[tuple[str, str], list[Any]] = {}
"""What code emits does not depend on who keeps its state."""

_HEARD = threading.local()
"""The last verdict of this thread's scenario."""

KEPT: dict[str, list[tuple[int, Any]]] = {}
"""What the sink of an application was given, and in which batch."""


def keeper(app: str) -> Any:
    def keep(frame: Any, batch: int) -> None:
        rows = [(batch, tuple(_plain(value) for value in row)) for row in frame.collect()]
        KEPT.setdefault(app, []).extend(rows)

    return keep


def _plain(value: Any) -> Any:
    from pyspark.sql import Row

    if isinstance(value, Row):
        return tuple(_plain(item) for item in value)
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    # Sums of floats depend on the order of rows, by their last digits.
    return round(value, 6) if isinstance(value, float) else value


@dataclass(frozen=True)
class Outcome:
    name: str
    carried: bool
    why: str
    spark_resumes: bool
    spark_why: str
    verdict: str = ""
    """What `check` says of the same old and new code."""


def write_half(folder: Path, half: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = _FIRST if half == 1 else (_SECOND,)
    number = 0 if half == 1 else len(_FIRST)
    for file, rows in enumerate(files, number):
        lines = []
        for at, (k, city, v, w, x, minute) in enumerate(rows):
            made = sum(len(one) for one in (*_FIRST, _SECOND)[:file]) + at
            lines.append(
                json.dumps(
                    {
                        "id": _AGAIN.get((file, at), made),
                        "k": k,
                        "city": city,
                        "v": v,
                        "w": w,
                        "x": x,
                        "d": f"{v}.25",
                        "at": f"2026-01-01T{10 + minute // 60}:{minute % 60:02}:00Z",
                    }
                )
            )
        path = folder / f"{file}.json"
        path.write_text("\n".join(lines) + "\n")
        # Spark takes files in the order of their times.
        os.utime(path, (_LONG_AGO + file, _LONG_AGO + file))


def conf_of(one: Scenario) -> dict[str, str]:
    return {_PROVIDER: _PROVIDERS[one.provider], **_QUICK, **one.conf}


@contextlib.contextmanager
def settings(spark: Any, one: Scenario) -> Iterator[None]:
    conf = conf_of(one)
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def write_app(
    path: Path, code: str, one: Scenario, source: Path, checkpoint: Path, script: bool = False
) -> str:
    path.write_text(
        (_SCRIPT if script else _APP).format(
            code=code,
            schema=SCHEMA,
            source=str(source),
            checkpoint=str(checkpoint),
            mode=one.mode,
            kept=str(path),
            conf=conf_of(one),
        )
    )
    return str(path)


def run(
    spark: Any, app: str, checkpoint: Path, noted: bool = False, since: int = len(_FIRST)
) -> list[Any]:
    """What the code emits until its input is at an end, from a batch on."""
    from floodmark.engine.code.outline import described
    from floodmark.engine.code.query import read_query
    from floodmark.engine.pipelines.application import load_application
    from floodmark.engine.start.notes import note_of
    from floodmark.redaction import Redaction

    KEPT[app] = []
    pipeline = load_application(app).pipelines[0]
    writer = pipeline(spark, None).trigger(availableNow=True)
    redaction = Redaction.fresh()
    drawn = described(spark, read_query(writer), redaction=redaction) if noted else None
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        if not query.awaitTermination(600):
            raise TimeoutError("the stream does not end")
    finally:
        query.stop()
    if drawn is not None:
        # As a start by floodmark leaves it; its lease would have to be waited for here.
        (checkpoint / "_floodmark" / "starts").mkdir(parents=True)
        note = note_of(drawn, app, 0, redaction)
        (checkpoint / "_floodmark" / "starts" / "1.json").write_bytes(note)
    return sorted((row for batch, row in KEPT[app] if batch >= since), key=repr)


def run_script(script: str, checkpoint: Path, since: int = len(_FIRST)) -> list[Any]:
    """What a plain script emits; run as spark-submit does, but in this process with its lists."""
    import runpy

    KEPT[script] = []
    before = sys.argv
    sys.argv = [script, str(checkpoint)]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv = before
    return sorted((row for batch, row in KEPT[script] if batch >= since), key=repr)


def expected(
    spark: Any, one: Scenario, folder: Path, app: str, source: Path, script: bool = False
) -> list[Any]:
    if one.expect is None and (one.new, one.mode) in _KNOWN:
        return _KNOWN[one.new, one.mode]
    if one.expect is None:
        write_half(source, 1)
        write_half(source, 2)
        place = folder / "from-the-start"
        rows = run_script(app, place) if script else run(spark, app, place)
        shutil.rmtree(source)
        _KNOWN[one.new, one.mode] = rows
        return rows
    from pyspark.sql import functions as F  # noqa: N812 - as the scenarios call it

    for half in (1, 2):
        write_half(folder / f"half-{half}", half)
    reader = spark.read.schema(SCHEMA)
    first = reader.json(str(folder / "half-1")).withColumn("half", F.lit(1))
    second = reader.json(str(folder / "half-2")).withColumn("half", F.lit(2))
    names = {"first": first, "second": second, "everything": first.unionByName(second), "F": F}
    rows = eval(one.expect, names)
    return sorted((tuple(_plain(v) for v in row) for row in rows.collect()), key=repr)


def run_scenario(spark: Any, one: Scenario, folder: Path, script: bool = False) -> Outcome:
    """`script`: old and new code are plain scripts, and no start was noted: `--old` tells."""
    from floodmark import api
    from floodmark.changes.apply import Carrying

    folder.mkdir(parents=True)
    source, old, new = folder / "input", folder / "old", folder / "new"
    old_app = write_app(folder / "old_app.py", one.old, one, source, old, script)
    new_app = write_app(folder / "new_app.py", one.new, one, source, new, script)

    def go_on(app: str, checkpoint: Path, noted: bool = False) -> list[Any]:
        if script:
            return run_script(app, checkpoint)
        return run(spark, app, checkpoint, noted=noted)

    with settings(spark, one):
        wanted = expected(spark, one, folder, new_app, source, script)
        write_half(source, 1)
        go_on(old_app, old, noted=True)
        options = dict(one.options)
        said_yes = False
        if script:
            options["from_app"] = old_app
            said_yes = api.check(str(old), new_app, old=old_app).verdict.is_yes
        if one.migration is not None:
            text = "from pyspark.sql import functions as F\n\n" + one.migration
            (folder / "MIGRATION.py").write_text(text)
            options["with_file"] = str(folder / "MIGRATION.py")
        copied = folder / "copied"
        api.copy(str(old), str(copied), carrying=Carrying(True, 0))
        hear_verdicts()
        try:
            api.migrate(str(old), str(new), app=new_app, carrying=Carrying(True, 0), **options)
            write_half(source, 2)
            carried, why = _verdict(go_on(new_app, new), wanted)
        except Exception as error:
            carried, why = False, f"{type(error).__name__}: {error}"
            if os.environ.get("FLOODMARK_DEBUG"):
                raise
            write_half(source, 2)
        try:
            resumes, spark_why = _verdict(go_on(new_app, copied), wanted)
        except Exception as error:
            resumes, spark_why = False, _first_line(error)
    if said_yes and not resumes:
        carried, why = False, f"check said yes, and Spark did otherwise: {spark_why}"
    return Outcome(one.name, carried, why, resumes, spark_why, _HEARD.verdict)


def hear_verdicts() -> None:
    """What `check` would say of what a migration compares: the same code, drawn once."""
    from floodmark.engine.state import migrate
    from floodmark.rules.restarts.verdict import judge_restart

    compared = migrate.compared
    if compared.__name__ == "heard":
        return

    def heard(*given: Any) -> Any:
        comparison = compared(*given)
        _HEARD.verdict = judge_restart(comparison).verdict.value
        return comparison

    migrate.compared = heard


def _verdict(found: list[Any], wanted: list[Any]) -> tuple[bool, str]:
    if found == wanted:
        return True, ""
    return False, f"emitted {found}, not {wanted}"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:300]


def runs_on(one: Scenario, version: str, every: bool = False) -> bool:
    """On a Spark that is not the project's own, a scenario runs where it says so."""
    return one.since <= version and (every or version.startswith("4.2") or version in one.sparks)


def summary(outcomes: list[Outcome]) -> str:
    carried = sum(one.carried for one in outcomes)
    resumes = sum(one.spark_resumes for one in outcomes)
    return f"continuity: {carried} of {len(outcomes)} carried; Spark resumes {resumes} by itself"


def session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("continuity")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        # The first tier alone has room for a third of the code that a hundred queries need.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
        "-XX:ReservedCodeCacheSize=240m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **_QUICK,
        # A worker that starts on a busy machine takes its time.
        "spark.python.authenticate.socketTimeout": "600s",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **_connectors(os.environ.get("CONNECTORS", "")),
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _connectors(jars: str) -> dict[str, str]:
    from floodmark.engine.spark.session import DELTA_CONF

    return {
        **({"spark.jars": jars} if jars else {}),
        **(DELTA_CONF if "delta-spark" in jars else {}),
    }


def _in_turn(every: Iterator[Scenario]) -> list[Scenario]:
    """One of each operator, then the next of each: a run that is stopped has seen them all."""
    seen: Counter[str] = Counter()
    numbered = []
    for one in every:
        seen[one.operator] += 1
        numbered.append((seen[one.operator], one))
    return [one for _, one in sorted(numbered, key=lambda pair: pair[0])]


def a_third(found: list[Scenario]) -> list[Scenario]:
    """The same ones each time, of every operator."""
    return found[::3]


def main(folder: Path, *wanted: str, every: bool = False, scripts: bool = False) -> int:
    import pyspark

    sys.modules.setdefault("continuity_matrix", sys.modules[__name__])
    spark = session(folder)
    spark.sparkContext.setLogLevel("OFF")
    outcomes = []
    chosen = [
        one
        for one in _in_turn(scenarios())
        if runs_on(one, pyspark.__version__, every)
        and (not wanted or any(one.name.startswith(word) for word in wanted))
    ]
    if scripts:
        whole = a_third(_in_turn(scenarios()))
        chosen = [one for one in chosen if one in whole]

    def run_one(numbered: tuple[int, Scenario]) -> Outcome:
        number, one = numbered
        try:
            return run_scenario(spark.newSession(), one, folder / str(number), scripts)
        except Exception as error:
            return Outcome(one.name, False, f"not even run: {_first_line(error)}", False, "")

    def tell(outcome: Outcome) -> None:
        outcomes.append(outcome)
        # While floodmark runs a script in another thread, sys.stdout is not this process's own.
        told = json.dumps({**asdict(outcome), "spark": pyspark.__version__})
        print(told, file=sys.__stdout__, flush=True)

    late = []
    # A stream waits more than it works.
    # A script is run as __main__, of which a process has one.
    with ThreadPoolExecutor(1 if scripts else _AT_ONCE) as pool:
        for numbered, outcome in zip(
            enumerate(chosen), pool.map(run_one, enumerate(chosen)), strict=True
        ):
            if _LATE in f"{outcome.why} {outcome.spark_why}":
                late.append((len(chosen) + numbered[0], numbered[1]))
            else:
                tell(outcome)
    for numbered in late:
        tell(run_one(numbered))
    print(summary(outcomes), file=sys.stderr)
    spark.stop()
    assert len(outcomes) == len(chosen)
    return 0 if all(one.carried for one in outcomes) else 1


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word not in (EVERY, SCRIPTS)]
    ways = {"every": EVERY in sys.argv, "scripts": SCRIPTS in sys.argv}
    sys.exit(main(Path(given[0]), *given[1:], **ways))
