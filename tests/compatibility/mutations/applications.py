"""Writes a query, mutated or not, as an application file that `floodmark check` can load."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path

from compatibility.mutations.inputs import CSV_SCHEMA, SCHEMA
from compatibility.mutations.queries import Query
from compatibility.queries import PARTITIONS

# Compiling code for six rows costs more than anything else here. Without batches that have no
# data, one run over all files has the same batches as two runs over half of them each.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    PARTITIONS: "1",
}
_APPLICATION = '''"""A query of the mutation campaign."""
from floodmark import pipeline
from pyspark.sql import functions as F

from compatibility.mutations.sinks import gather

INPUT = {input!r}
OUTPUT = {output!r}
SCHEMA = {schema!r}
CSV_SCHEMA = {csv_schema!r}


{before}


@pipeline(checkpoint={checkpoint!r}, conf={conf!r})
def changed(spark, start):
    def read(name, schema=SCHEMA, format="json", **options):
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", {files})
        return reader.options(**options).format(format).load(INPUT + "/" + name)

{code}
    writer = out.writeStream.outputMode({mode!r}).trigger(**{trigger!r})
    return {sink}
'''
_SINKS = {
    "rows": "writer.foreachBatch(gather)",
    "files": 'writer.format("json").option("path", OUTPUT)',
    "parts": 'writer.format("json").option("path", OUTPUT).partitionBy("k")',
}


@dataclass(frozen=True)
class Version:
    """A query's code with what one mutation may change beside it."""

    query: Query
    schema: str = SCHEMA
    csv_schema: str = CSV_SCHEMA
    files: int = 1
    """maxFilesPerTrigger"""
    sink: str = ""
    conf: dict[str, str] = field(default_factory=dict)

    def with_code(self, code: str, before: str | None = None) -> Version:
        query = replace(self.query, code=code)
        return replace(self, query=query if before is None else replace(query, before=before))


def write(version: Version, path: Path, inputs: Path, output: Path, checkpoint: Path) -> Path:
    query = version.query
    text = _APPLICATION.format(
        input=str(inputs),
        output=str(output),
        schema=version.schema,
        csv_schema=version.csv_schema,
        before=query.before,
        checkpoint=str(checkpoint),
        conf={**QUICK, **query.conf, **version.conf},
        files=version.files,
        code=textwrap.indent(query.code, "    "),
        mode=query.mode,
        trigger=query.trigger,
        sink=version.sink or _SINKS[query.sink],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
