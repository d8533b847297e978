"""Asks Spark for the content of a DStreams folder that no reader of data can decode.

Spark deserialises: it loads classes and calls their code, which the folder's writer has chosen.
So this happens only where the user trusts the writer.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from floodmark.checkpoint.conf_keys import CODEC, MASTER, UI_ENABLED
from floodmark.checkpoint.dstreams.folder import DStreamsCheckpoint, Graph, SparkAnswer
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.engine.dstreams.asked_graph import graph_of
from floodmark.engine.run.failure import sentence_of
from floodmark.engine.spark.session import (
    SessionOptions,
    build_session,
    end_session,
    running_session,
)
from floodmark.errors import CannotRead, FloodmarkError
from floodmark.state.files.compression import codec_of, decompress
from floodmark.statestore.dstreams import Parts
from floodmark.storage.dstreams import MOST_READ, with_graph
from floodmark.storage.files import Files

_KRYO = "spark.kryo"


@contextlib.contextmanager
def trusted_session(conf: Mapping[str, str]) -> Iterator[Any]:
    """Yield the session that this process has, or a small one for the questions."""
    running = running_session()
    if running is not None:
        yield running
        return
    with tempfile.TemporaryDirectory(prefix="floodmark-asking-") as folder:
        settings = {MASTER: "local[1]", UI_ENABLED: "false", **conf}
        log = Path(folder) / "spark.log"
        spark = build_session(SessionOptions("floodmark: inspect", (), settings, log, True))
        try:
            yield spark
        finally:
            end_session(spark)


def ask_spark(files: Files, checkpoint: Checkpoint, conf: Mapping[str, str]) -> Checkpoint:
    """Add Spark's answer: which file it takes, and why not a newer one."""
    found = checkpoint.dstreams
    assert found is not None
    with trusted_session(conf) as spark:
        _ready_for_python(spark)
        failures: dict[str, str] = {}
        taken, graph = _newest_taken(spark, files, found, conf, failures)
        answer = SparkAnswer(
            str(spark.version),
            taken,
            None if graph is None else graph.checkpoint_time_ms,
            failures,
        )
    if graph is not None and taken is not None and taken != found.restart_file:
        order = [file.path for file in reversed(found.graph_files)]
        older = next(iter(order[order.index(taken) + 1 :]), None)
        found = with_graph(replace(found, restart_file=taken, fall_back_file=older), graph)
    return replace(checkpoint, dstreams=replace(found, spark=answer))


def _newest_taken(
    spark: Any,
    files: Files,
    found: DStreamsCheckpoint,
    conf: Mapping[str, str],
    failures: dict[str, str],
) -> tuple[str | None, Graph | None]:
    """Return the newest file that Spark can deserialise, as its CheckpointReader does."""
    for file in list(reversed(found.graph_files))[:MOST_READ]:
        try:
            data = files.read(RelativePath(file.path))
            codec = _codec(data)
            checkpoint = _deserialized(spark, data, codec, conf)
            return file.path, graph_of(spark, checkpoint, codec)
        except FloodmarkError as error:
            failures[file.path] = error.what
        except Exception as error:  # a stranger's classes may raise anything
            failures[file.path] = sentence_of(error)
    return None, None


def _codec(data: bytes) -> str | None:
    try:
        return codec_of(data)
    except FloodmarkError:
        return None  # a class of the user's own, which the settings name


def _deserialized(spark: Any, data: bytes, codec: str | None, conf: Mapping[str, str]) -> Any:
    jvm = spark._jvm
    settings = _settings(spark, {**({CODEC: codec} if codec else {}), **conf})
    stream = jvm.java.io.ByteArrayInputStream(data)
    return jvm.org.apache.spark.streaming.Checkpoint.deserialize(stream, settings)


def _settings(spark: Any, conf: Mapping[str, str]) -> Any:
    settings = spark.sparkContext._jsc.sc().conf().clone()
    for key, value in conf.items():
        settings.set(key, value)
    return settings


def _ready_for_python(spark: Any) -> None:
    """Register Python's serializer, which unpickles the functions of PySpark's streams."""
    from pyspark.streaming import StreamingContext

    assert spark is not None
    StreamingContext._ensure_initialized()


def parts_through_spark(conf: Mapping[str, str]) -> Parts:
    """Read Kryo's records: Spark deserialises them and writes them as Java's own objects."""

    def read(found: DStreamsCheckpoint, parts: Sequence[bytes]) -> list[bytes]:
        recorded = {key: value for key, value in found.conf.items() if key.startswith(_KRYO)}
        # Spark 4 compresses the parts by default; earlier releases only if they are configured so.
        is_plain = found.conf.get("spark.checkpoint.compress", "").lower() == "false"
        content = [one if is_plain or _codec(one) is None else decompress(one) for one in parts]
        with trusted_session(conf) as spark:
            settings = _settings(spark, {**recorded, **conf})
            return [_as_java(spark, settings, one) for one in content]

    return read


def _as_java(spark: Any, settings: Any, part: bytes) -> bytes:
    jvm = spark._jvm
    serializers = jvm.org.apache.spark.serializer
    any_class = getattr(getattr(jvm, "scala.reflect.ClassTag$"), "MODULE$").Any()
    written = jvm.java.io.ByteArrayOutputStream()
    try:
        kryo = serializers.KryoSerializer(settings).newInstance()
        records = kryo.deserializeStream(jvm.java.io.ByteArrayInputStream(part)).asIterator()
        java = serializers.JavaSerializer(settings).newInstance().serializeStream(written)
        java.writeAll(records, any_class)
        java.close()
    except Exception as error:
        raise CannotRead(
            "Spark cannot read the records of Kryo",
            sentence_of(error),
            "Give Spark the application's classes: --conf spark.jars=APP.jar. Only the application "
            "can read a class that Java cannot serialize: sc.checkpointFile(folder).",
        ) from None
    return bytes(written.toByteArray())
