"""Asks Spark for what a DStreams folder holds and no reader of data can tell.

Spark deserialises: it loads classes and calls their code, chosen by whoever wrote the folder. So
this is done only where the user trusts them.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from floodmark.state.files.framing import codec_of, decompress
from floodmark.statestore.dstreams import Parts
from floodmark.storage.dstreams import MOST_READ, with_graph
from floodmark.storage.files import Files

_CODEC = "spark.io.compression.codec"
_KRYO = "spark.kryo"


@contextlib.contextmanager
def trusted_session(conf: Mapping[str, str]) -> Iterator[Any]:
    """The session that this process has, or a small one for the questions."""
    running = running_session()
    if running is not None:
        yield running
        return
    with tempfile.TemporaryDirectory(prefix="floodmark-asking-") as folder:
        settings = {"spark.master": "local[1]", "spark.ui.enabled": "false", **conf}
        log = Path(folder) / "spark.log"
        spark = build_session(SessionOptions("floodmark: inspect", (), settings, log, True))
        try:
            yield spark
        finally:
            end_session(spark)


def ask_spark(files: Files, checkpoint: Checkpoint, conf: Mapping[str, str]) -> Checkpoint:
    """The folder with what Spark says of it: which file it takes, and why not a newer one."""
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
    """As CheckpointReader: from the newest file on, the first that can be deserialised."""
    for file in list(reversed(found.graph_files))[:MOST_READ]:
        try:
            data = files.read(RelativePath(file.path))
            codec = _codec(data)
            checkpoint = _deserialized(spark, data, codec, conf)
            return file.path, graph_of(spark, checkpoint, codec)
        except FloodmarkError as error:
            failures[file.path] = error.what
        except Exception as error:  # whatever the classes of a stranger throw
            failures[file.path] = sentence_of(error)
    return None, None


def _codec(data: bytes) -> str | None:
    try:
        return codec_of(data)
    except FloodmarkError:
        return None  # a class of the user's own, which the settings name


def _deserialized(spark: Any, data: bytes, codec: str | None, conf: Mapping[str, str]) -> Any:
    jvm = spark._jvm
    settings = _settings(spark, {**({_CODEC: codec} if codec else {}), **conf})
    stream = jvm.java.io.ByteArrayInputStream(data)
    return jvm.org.apache.spark.streaming.Checkpoint.deserialize(stream, settings)


def _settings(spark: Any, conf: Mapping[str, str]) -> Any:
    settings = spark.sparkContext._jsc.sc().conf().clone()
    for key, value in conf.items():
        settings.set(key, value)
    return settings


def _ready_for_python(spark: Any) -> None:
    """The functions of PySpark's streams are unpickled by a serializer that Python registers."""
    from pyspark.streaming import StreamingContext

    assert spark is not None
    StreamingContext._ensure_initialized()


def parts_through_spark(conf: Mapping[str, str]) -> Parts:
    """Reads Kryo's records: Spark deserialises them and writes them as Java's own objects."""

    def read(found: DStreamsCheckpoint, parts: Sequence[bytes]) -> list[bytes]:
        recorded = {key: value for key, value in found.conf.items() if key.startswith(_KRYO)}
        # Spark 4 packs the parts unless it is told not to; earlier ones only if they are told to.
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
            "Give it the application's classes: --conf spark.jars=APP.jar. A class that Java "
            "cannot serialize is read by the application alone: sc.checkpointFile(folder).",
        ) from None
    return bytes(written.toByteArray())
