"""What the campaign does to its tables, in Spark 4.1: a line a statement, a JSON answer for each.

`append TABLE FILES FIRST` adds rows in as many files, and every other statement is SQL.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

ROWS = 10


def session(name: str) -> Any:
    spark = (
        SparkSession.builder.master("local[2]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars", os.environ["ICEBERG_JARS"])
        .config(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", os.environ["LAKE"])
        .config("spark.sql.catalog.lake.cache-enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def append(spark: Any, table: str, files: int, first: int) -> None:
    rows = spark.range(first, first + files * ROWS)
    rows = rows.selectExpr("cast(id % 3 as string) customer", "id amount")
    rows.repartition(files).writeTo(table).append()


def main() -> None:
    spark = session("lake")
    for line in sys.stdin:
        statement = json.loads(line)
        words = statement.split()
        rows: list[Any] = []
        if words[0] == "append":
            append(spark, words[1], int(words[2]), int(words[3]))
        else:
            found = spark.sql(statement)
            rows = [row.asDict() for row in found.collect()] if found.columns else []
        print("answer " + json.dumps(rows, default=str), flush=True)


if __name__ == "__main__":
    main()
