"""A pipeline that tries every way out of a drill that is known, and says what became of each.

    hostile.py BASE PORT

BASE/real holds what must stay as it is; nobody may connect to PORT. It is run by test_hostile.py.
"""

from __future__ import annotations

import ctypes
import os
import posix
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

base, port = Path(sys.argv[1]), int(sys.argv[2])
real = base / "real"
kept = real / "kept.txt"
spark = SparkSession.builder.appName("hostile").getOrCreate()
rows = spark.readStream.schema("n BIGINT").json(str(base / "in"))


def in_a_thread(act, *given):
    found = []

    def run():
        try:
            act(*given)
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()  # no thread may outlive its attempt
    for error in found:
        raise error


def by_libc(name, *given):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*given) != 0:
        raise PermissionError(ctypes.get_errno(), name)


def in_a_worker(kind):
    """By a function over rows, in Spark's own Python worker."""

    def act(_n):
        try:
            if kind == "file":
                Path(kept).write_text("gone")
            elif kind == "connection":
                socket.create_connection(("127.0.0.1", port), 5).close()
            else:
                subprocess.run(["rm", str(kept)], check=True)
        except PermissionError:
            return "refused"
        return "done"

    found = spark.range(1).select(F.udf(act, "string")("id").alias("told")).first()["told"]
    if found == "refused":
        raise PermissionError(found)


def arrow_table():
    import pyarrow as pa

    return pa.table({"n": [1]})


def arrow(module, name, *given, **named):
    import importlib

    getattr(importlib.import_module(module), name)(*given, **named)


def kafka_producer():
    from confluent_kafka import Producer

    Producer({"bootstrap.servers": f"127.0.0.1:{port}"})


def duckdb_file():
    import duckdb

    duckdb.connect(str(real / "kept.duckdb"))


def psycopg_connect(owner):
    import psycopg

    place = psycopg if owner == "module" else psycopg.Connection
    place.connect(f"host=127.0.0.1 port={port} dbname=x connect_timeout=5")


def jvm():
    return spark._jvm


def java_path():
    return jvm().java.nio.file.Paths.get(str(real), spark._sc._gateway.new_array(jvm().String, 0))


def hadoop():
    path = jvm().org.apache.hadoop.fs.Path(f"file:{kept}")
    return path, path.getFileSystem(spark._jsc.hadoopConfiguration())


def attempts(batch):
    url = f"jdbc:postgresql://127.0.0.1:{port}/x"
    yield "os.open", lambda: os.open(kept, os.O_WRONLY | os.O_TRUNC)
    yield "os.open through /proc", lambda: os.open(f"/proc/self/root{kept}", os.O_WRONLY)
    yield "os.truncate", lambda: os.truncate(kept, 0)
    yield "os.chmod", lambda: os.chmod(kept, 0o777)
    yield "os.utime", lambda: os.utime(kept)
    yield "os.rmdir", lambda: os.rmdir(real / "folder")
    yield "os.symlink", lambda: os.symlink(kept, real / "link")
    yield "os.link", lambda: os.link(mine(), real / "link")
    yield "posix.rename", lambda: posix.rename(mine(), kept)
    yield "posix.unlink", lambda: posix.unlink(kept)
    yield "shutil.rmtree", lambda: shutil.rmtree(real)
    yield "tempfile", lambda: tempfile.mkstemp(dir=real)
    yield "a thread", lambda: in_a_thread(posix.unlink, str(kept))
    yield "libc.unlink", lambda: by_libc("unlink", str(kept).encode())
    yield "libc.rename", lambda: by_libc("rename", str(mine()).encode(), str(kept).encode())
    yield "os.system", lambda: os.system(f"rm {kept}")
    yield "subprocess", lambda: subprocess.run(["rm", str(kept)], check=True)
    yield "posix_spawn", lambda: os.posix_spawn("/bin/rm", ["rm", str(kept)], {})
    yield "os.fork", os.fork
    yield "os.kill", lambda: os.kill(os.getppid(), 0)
    yield "socket", lambda: socket.create_connection(("127.0.0.1", port), 5)
    yield (
        "datagram",
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)),
    )
    yield "urllib", lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
    yield "sqlite3.Connection", lambda: sqlite3.Connection(real / "kept.db")
    yield "psycopg.connect", lambda: psycopg_connect("module")
    yield "psycopg.Connection", lambda: psycopg_connect("class")
    yield "a Kafka producer", kafka_producer
    yield "duckdb", duckdb_file
    yield (
        "pyarrow.parquet",
        lambda: arrow("pyarrow.parquet", "write_table", arrow_table(), str(real / "new.parquet")),
    )
    yield (
        "pyarrow.csv",
        lambda: arrow("pyarrow.csv", "write_csv", arrow_table(), str(real / "new.csv")),
    )
    yield "pandas", lambda: arrow_table().to_pandas().to_parquet(str(real / "new.parquet"))
    yield "an SQL insert", lambda: spark.sql(f"INSERT INTO parquet.`{real}` VALUES (1)")
    yield (
        "an SQL folder",
        lambda: spark.sql(f"INSERT OVERWRITE DIRECTORY '{real}' USING parquet SELECT 1 AS n"),
    )
    yield (
        "an SQL table",
        lambda: spark.sql(f"CREATE TABLE t USING parquet LOCATION '{real}' AS SELECT 1 AS n"),
    )
    yield "writeTo", lambda: batch.writeTo(f"parquet.`{real}`").append()
    yield "an RDD", lambda: batch.rdd.saveAsTextFile(str(real / "rdd"))
    yield "a Kafka sink", lambda: batch.write.format("kafka").save()
    yield "a JDBC sink", lambda: batch.write.jdbc(url, "t")
    yield (
        "a JDBC statement",
        lambda: (
            spark.read.format("jdbc")
            .options(url=url, dbtable="t", sessionInitStatement="DELETE FROM t")
            .load()
        ),
    )
    yield (
        "a query of its own",
        lambda: (
            spark.readStream.format("rate")
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(real / "ck"))
            .start(str(real / "out"))
        ),
    )
    yield (
        "Spark Connect",
        lambda: SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate(),
    )
    yield "a UDF's file", lambda: in_a_worker("file")
    yield "a UDF's connection", lambda: in_a_worker("connection")
    yield "a UDF's program", lambda: in_a_worker("program")
    yield "the JVM's writer", lambda: batch._jdf.write().mode("overwrite").parquet(str(real))
    yield (
        "the JVM's SQL",
        lambda: spark._jsparkSession.sql(f"INSERT INTO parquet.`{real}` SELECT 1"),
    )
    yield "Hadoop's create", lambda: hadoop()[1].create(hadoop()[0])
    yield "Java's File", lambda: jvm().java.io.File(str(kept)).delete()
    yield "Java's Files", lambda: jvm().java.nio.file.Files.delete(java_path().resolve("kept.txt"))
    yield "Java's stream", lambda: jvm().java.io.FileOutputStream(str(kept))
    yield "Java's writer", lambda: jvm().java.io.FileWriter(str(kept))
    yield "Java's random access", lambda: jvm().java.io.RandomAccessFile(str(kept), "rw")
    yield "Java's program", lambda: jvm().java.lang.Runtime.getRuntime().exec(f"rm {kept}")
    yield "Java's socket", lambda: jvm().java.net.Socket("127.0.0.1", port)
    yield "Java's URL", lambda: jvm().java.net.URL(f"http://127.0.0.1:{port}/").openStream()
    yield (
        "Java's channel",
        lambda: jvm().java.nio.channels.SocketChannel.open(
            jvm().java.net.InetSocketAddress("127.0.0.1", port)
        ),
    )
    yield (
        "Java's HTTP",
        lambda: (
            jvm()
            .java.net.http.HttpClient.newHttpClient()
            .send(
                jvm()
                .java.net.http.HttpRequest.newBuilder(
                    jvm().java.net.URI.create(f"http://127.0.0.1:{port}/")
                )
                .build(),
                jvm().java.net.http.HttpResponse.BodyHandlers.ofString(),
            )
        ),
    )
    yield "Java's database", lambda: jvm().java.sql.DriverManager.getConnection(url)
    yield "Java's reflection", lambda: by_reflection()


def by_reflection():
    """Past the names that are refused: only the kernel stands here."""
    kind = jvm().java.lang.Class.forName("java.io.File")
    kinds = spark._sc._gateway.new_array(jvm().java.lang.Class, 1)
    kinds[0] = jvm().java.lang.Class.forName("java.lang.String")
    given = spark._sc._gateway.new_array(jvm().Object, 1)
    given[0] = str(kept)
    file = kind.getConstructor(kinds).newInstance(given)
    none = spark._sc._gateway.new_array(jvm().java.lang.Class, 0)
    nothing = spark._sc._gateway.new_array(jvm().Object, 0)
    if not kind.getMethod("delete", none).invoke(file, nothing):
        raise PermissionError("File.delete")


def datagram():
    return socket.socket(type=socket.SOCK_DGRAM)


def mine():
    """A file of the run's own."""
    descriptor, path = tempfile.mkstemp()
    os.close(descriptor)
    return path


def write(batch, batch_id):
    lines = []
    for name, act in attempts(batch):
        try:
            act()
            lines.append(f"{name}: done")
        except BaseException as error:
            words = (str(error).splitlines() or [""])[0]
            lines.append(f"{name}: {type(error).__name__}: {words}")
    # These two have places of the run's own.
    with sqlite3.connect(real / "kept.db") as connection:
        connection.execute("DELETE FROM kept")
    kept.write_text("gone")
    with open(base / "told.txt", "w") as out:
        out.writelines(f"{line}\n" for line in lines)


writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(base / "ck"))
writer.start().awaitTermination()
