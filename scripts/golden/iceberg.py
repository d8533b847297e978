"""The scenario that reads and writes Iceberg tables, and what became of the tables after it.

Arguments: Iceberg's jars, comma-separated. Beside the checkpoint the tables' own metadata is
kept, at several times: `tables/<name>/metadata/`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from scripts.golden.drive import make
from scripts.golden.place import Place
from scripts.golden.scenario import Run, Scenario
from scripts.golden.session import session

PLACE = Place("iceberg")
ORDERS, COPY = "lake.db.orders", "lake.db.copy"
CATALOG = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": str(PLACE.folder / "lake"),
}
LATEST = "TIMESTAMP '2100-01-01 00:00:00'"


def main(jars: str) -> None:
    spark = session({"spark.jars": jars, **CATALOG})
    print(f"{spark.version}  iceberg", flush=True)
    make(spark, iceberg(spark))
    keep_table("orders", "orders-read-on")
    tables_later(spark)
    spark.stop()


def iceberg(spark: SparkSession) -> Scenario:
    def begin() -> None:
        create(spark, ORDERS)
        create(spark, COPY)
        append(spark, files=2)

    def go_on() -> None:
        append(spark, files=1)

    def go_on_again() -> None:
        keep_table("orders")
        keep_table("copy")
        append(spark, files=3)

    def build(spark: SparkSession, place: Place) -> Any:
        reader = spark.readStream.format("iceberg")
        rows = reader.option("streaming-max-files-per-micro-batch", 1).load(ORDERS)
        return rows.writeStream.format("iceberg").option("path", COPY)

    return Scenario(
        "iceberg",
        "an Iceberg source and an Iceberg sink: two files of the first snapshot, then another",
        build,
        (Run(wait=begin), Run(wait=go_on)),
        Run(wait=go_on_again),
    )


def tables_later(spark: SparkSession) -> None:
    """The source's table after its snapshots were expired, was replaced, and was made anew."""
    expire(spark, ORDERS)
    keep_table("orders", "orders-expired")
    append(spark, files=1)
    expire(spark, COPY)
    append(spark, files=1, table=COPY)
    expire(spark, COPY)
    keep_table("copy", "copy-expired")
    spark.sql(f"CREATE OR REPLACE TABLE {ORDERS} (id BIGINT) USING iceberg")
    append(spark, files=1)
    keep_table("orders", "orders-replaced")
    spark.sql(f"DROP TABLE {ORDERS} PURGE")
    create(spark, ORDERS)
    append(spark, files=1)
    append(spark, files=1)
    keep_table("orders", "orders-made-anew")


def create(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")


def append(spark: SparkSession, files: int, table: str = ORDERS) -> None:
    spark.range(files * 3).repartition(files).writeTo(table).append()


def expire(spark: SparkSession, table: str) -> None:
    name = table.partition(".")[2]
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', older_than => {LATEST}, "
        "retain_last => 1)"
    )


def keep_table(name: str, kept_as: str | None = None) -> None:
    """The table's newest metadata file: all that tells of its snapshots."""
    folder = PLACE.folder / "lake" / "db" / name / "metadata"
    newest = max(folder.glob("v*.metadata.json"), key=number)
    target = PLACE.folder / "kept-tables" / (kept_as or name) / "metadata"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(newest, target / newest.name)
    shutil.copytree(PLACE.folder / "kept-tables", PLACE.kept / "tables", dirs_exist_ok=True)


def number(metadata: Path) -> int:
    return int(metadata.name.partition(".")[0].removeprefix("v"))


if __name__ == "__main__":
    main(*sys.argv[1:])
