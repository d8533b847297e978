"""The matrix: what is changed, what the rules say to it, and whether Spark starts.

Each change is judged by the rules and rehearsed by Spark; `starts` is what Spark does on
the release that the tests run with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from compatibility import queries as q


@dataclass(frozen=True)
class Change:
    name: str
    old: str
    new: q.Build
    verdict: str
    rules: frozenset[str]
    """Those that must speak; others may, too."""
    starts: bool
    conf: dict[str, str] = field(default_factory=dict)
    spoil: str | None = None
    """What is done to the checkpoint before: `in-flight` or `sink-ahead`."""


SAME, FITS, UNKNOWN = "same", "compatible", "unknown"
MIGRATE, ANEW = "needs-migration", "needs-new-checkpoint"
ALL: list[Change] = []


def _add(
    name: str,
    old: str,
    new: q.Build,
    verdict: str,
    *rules: str,
    starts: bool = True,
    **more: Any,
) -> None:
    ALL.append(Change(name, old, new, verdict, frozenset(rules), starts, **more))


def _where(condition: str) -> q.Build:
    def build(spark: Any, folder: Path) -> Any:
        return q.noop(q.events(spark, folder).where(condition).select("user", "amount"), "append")

    return build


def _select(*columns: str) -> q.Build:
    def build(spark: Any, folder: Path) -> Any:
        frame = q.events(spark, folder).where("amount > 0").selectExpr(*columns)
        return q.noop(frame, "append")

    return build


def _options(**options: Any) -> q.Build:
    def build(spark: Any, folder: Path) -> Any:
        frame = q.events(spark, folder, **options).where("amount > 0").select("user", "amount")
        return q.noop(frame, "append")

    return build


def _grouped(
    *aggregates: str,
    by: tuple[str, ...] = ("user",),
    before: tuple[str, ...] = ("*",),
    mode: str = "update",
) -> q.Build:
    def build(spark: Any, folder: Path) -> Any:
        from pyspark.sql import functions as f

        rows = q.events(spark, folder).selectExpr(*before)
        grouped = rows.groupBy(*(f.expr(one) for one in by))
        return q.noop(grouped.agg(*(f.expr(one) for one in aggregates)), mode)

    return build


TOTALS = ("sum(amount) AS total", "count(*) AS n")

# What the documentation allows
_add("a filter added", "stateless", _where("amount > 0 AND qty > 1"), FITS, "filter-changed")
_add("a filter removed", "stateless", _where("true"), FITS, "filter-changed")
_add(
    "a projection, same columns",
    "stateless",
    _select("upper(user) AS user", "amount"),
    FITS,
    "projection-changed",
)
_add(
    "a projection, other columns",
    "stateless",
    _select("user", "amount", "qty"),
    FITS,
    "output-columns-changed",
)
_add("a rate limit", "stateless", _options(maxFilesPerTrigger=5), FITS, "source-limits-changed")
_add("an option", "stateless", _options(multiLine=False), FITS, "source-options-changed")


def _more_columns(spark: Any, folder: Path) -> Any:
    reader = spark.readStream.schema(q.EVENTS + ", note string").option("maxFilesPerTrigger", 1)
    rows = reader.json(str(folder / "events")).where("amount > 0")
    return q.noop(rows.select("user", "amount"), "append")


_add("a source's columns", "stateless", _more_columns, FITS, "source-columns-changed")


def _text_source(spark: Any, folder: Path) -> Any:
    reader = spark.readStream.schema("user string, amount double").option("maxFilesPerTrigger", 1)
    return q.noop(reader.csv(str(folder / "events")).where("amount > 0"), "append")


_add("json read as csv", "stateless", _text_source, FITS, "source-options-changed")


def _triggered(spark: Any, folder: Path) -> Any:
    return q.stateless(spark, folder).trigger(processingTime="5 seconds")


_add("a trigger", "stateless", _triggered, SAME, "trigger-changed")


def _console(spark: Any, folder: Path) -> Any:
    frame = q.events(spark, folder).where("amount > 0").select("user", "amount")
    return frame.writeStream.foreachBatch(lambda batch, number: None)


_add("another sink", "stateless", _console, FITS, "sink-changed")

# Sources
_add("a source added", "stateless", q.merged, MIGRATE, "source-count-changed", starts=False)
_add("a source removed", "merged", _select("user"), MIGRATE, "source-count-changed", starts=False)


def _swapped(spark: Any, folder: Path) -> Any:
    first = q.events(spark, folder, "others").select("user")
    return q.noop(first.union(q.events(spark, folder).select("user")), "append")


def _elsewhere(spark: Any, folder: Path) -> Any:
    rows = q.events(spark, folder, "others").where("amount > 0").select("user", "amount")
    return q.noop(rows, "append")


def _other_glob(spark: Any, folder: Path) -> Any:
    rows = q.events(spark, folder, "oth*").where("amount > 0").select("user", "amount")
    return q.noop(rows, "append")


def _above(spark: Any, folder: Path) -> Any:
    rows = q.events(spark, folder, ".", recursiveFileLookup=True, pathGlobFilter="*.json")
    return q.noop(rows.where("amount > 0").select("user", "amount"), "append")


def _rate(spark: Any, folder: Path) -> Any:
    rows = spark.readStream.format("rate").load()
    return q.noop(rows.selectExpr("'x' AS user", "1.0D AS amount"), "append")


def _named(spark: Any, folder: Path) -> Any:
    reader = spark.readStream.name("events").schema(q.EVENTS).option("maxFilesPerTrigger", 1)
    rows = reader.json(str(folder / "events")).where("amount > 0")
    return q.noop(rows.select("user", "amount"), "append")


_add(
    "a name for the source",
    "stateless",
    _named,
    MIGRATE,
    "source-names-unknown",
    starts=False,
    conf={"spark.sql.streaming.queryEvolution.enableSourceEvolution": "true"},
)
_add("sources swapped", "merged", _swapped, MIGRATE, "sources-reordered", starts=False)
_add("another folder", "stateless", _elsewhere, MIGRATE, "source-place-changed", starts=False)
_add("another glob", "stateless", _other_glob, MIGRATE, "source-place-changed")
_add("the folder above", "stateless", _above, UNKNOWN, "source-place-changed")
_add("another kind of source", "stateless", _rate, MIGRATE, "source-kind-changed", starts=False)

# Sinks
_add("the output's folder", "files", partial(q.files, output="o2"), ANEW, "sink-directory-changed")
_add("the output is ahead", "files", q.files, ANEW, "sink-ahead", spoil="sink-ahead")


def _files_wider(spark: Any, folder: Path) -> Any:
    frame = q.events(spark, folder).select("user", "amount", "qty")
    return frame.writeStream.format("parquet").option("path", str(folder / "out"))


def _files_option(spark: Any, folder: Path) -> Any:
    return q.files(spark, folder).option("compression", "zstd")


_add("files of other columns", "files", _files_wider, UNKNOWN, "output-columns-changed")
_add("an option of the sink", "files", _files_option, FITS, "sink-target-changed")

# Aggregations
_add(
    "aggregate added",
    "totals",
    _grouped(*TOTALS, "max(qty)"),
    MIGRATE,
    "aggregates-changed",
    starts=False,
)
_add(
    "aggregate removed", "totals", _grouped(TOTALS[0]), MIGRATE, "aggregates-changed", starts=False
)
_add(
    "aggregates reordered",
    "totals",
    _grouped(*TOTALS[::-1]),
    MIGRATE,
    "aggregates-changed",
    starts=False,
)
_add(
    "aggregate of another type",
    "totals",
    _grouped("sum(qty) AS total", TOTALS[1]),
    MIGRATE,
    "aggregates-changed",
    starts=False,
)
_add(
    "average for sum",
    "totals",
    _grouped("avg(amount) AS total", TOTALS[1]),
    MIGRATE,
    "aggregates-changed",
    starts=False,
)
_add(
    "maximum for sum",
    "totals",
    _grouped("max(amount) AS total", TOTALS[1]),
    MIGRATE,
    "aggregates-mean-another",
)
_add(
    "sum of another column",
    "longs",
    _grouped("sum(places)", "max(places)"),
    MIGRATE,
    "aggregates-mean-another",
)
_add(
    "sum of a changed column",
    "totals",
    _grouped(*TOTALS, before=("user", "amount * 2 AS amount")),
    MIGRATE,
    "aggregates-mean-another",
)
_add(
    "aggregates of one type reordered",
    "longs",
    _grouped("max(places)", "sum(qty)"),
    MIGRATE,
    "aggregates-mean-another",
)
_add(
    "an alias only",
    "totals",
    _grouped("sum(amount) AS paid", TOTALS[1]),
    FITS,
    "output-columns-changed",
)
_add(
    "an expression around the sum", "totals", _grouped("sum(amount) * 2 AS total", TOTALS[1]), FITS
)
_add(
    "a key added",
    "totals",
    _grouped(*TOTALS, by=("user", "product")),
    ANEW,
    "grouping-keys-changed",
    starts=False,
)
_add(
    "the key of another type",
    "totals",
    _grouped(*TOTALS, by=("qty",)),
    MIGRATE,
    "grouping-keys-changed",
    starts=False,
)
_add(
    "another key of the same type",
    "totals",
    _grouped(*TOTALS, by=("product",)),
    MIGRATE,
    "keys-mean-another",
)
_add(
    "the key made in another way",
    "totals",
    _grouped(*TOTALS, before=("lower(user) AS user", "amount")),
    MIGRATE,
    "keys-mean-another",
)
_add(
    "a key that cannot be null",
    "totals",
    _grouped(*TOTALS, before=("coalesce(user, '') AS user", "amount")),
    MIGRATE,
    "keys-mean-another",
)
_add("no key", "totals", _grouped(*TOTALS, by=()), MIGRATE, "grouping-keys-changed", starts=False)
_add(
    "complete for update", "totals", _grouped(*TOTALS, mode="complete"), FITS, "output-mode-changed"
)


def _filtered_totals(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    grouped = q.events(spark, folder).where("qty > 0").groupBy("user")
    return q.noop(grouped.agg(f.sum("amount").alias("total"), f.count("*").alias("n")))


def _watermarked_totals(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    grouped = q.late(spark, folder).groupBy("user")
    return q.noop(grouped.agg(f.sum("amount").alias("total"), f.count("*").alias("n")))


def _unique_totals(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    grouped = q.events(spark, folder).dropDuplicates(["user"]).groupBy("user")
    return q.noop(grouped.agg(f.sum("amount").alias("total"), f.count("*").alias("n")))


def _plain(spark: Any, folder: Path) -> Any:
    return q.noop(q.events(spark, folder).select("user"), "append")


_add("a filter before the sum", "totals", _filtered_totals, UNKNOWN, "filter-changed")
_add(
    "a watermark before the sum", "totals", _watermarked_totals, FITS, "watermark-added-or-removed"
)
_add(
    "an operator added",
    "totals",
    _unique_totals,
    MIGRATE,
    "stateful-operators-changed",
    starts=False,
)
_add(
    "another operator", "unique", q.unique_within, ANEW, "stateful-operators-changed", starts=False
)
_add("no operator any more", "totals", _plain, ANEW, "stateful-operators-changed", starts=False)
_add("a first operator", "stateless", q.totals, MIGRATE, "stateful-operators-changed", starts=False)
_add(
    "two changes at once",
    "totals",
    _grouped("sum(amount) AS total", by=("user", "product")),
    ANEW,
    "grouping-keys-changed",
    "aggregates-changed",
    starts=False,
)


def _in_a_list(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    rows = q.events(spark, folder).withColumn("item", f.explode(f.array("product", "product")))
    return q.noop(rows.groupBy("user").agg(*(f.expr(one) for one in TOTALS)))


_add("rows made twice", "totals", _in_a_list, UNKNOWN, "rows-made-another-way")
_add(
    "another time zone",
    "totals",
    q.totals,
    UNKNOWN,
    "evaluation-settings-changed",
    conf={"spark.sql.session.timeZone": "Asia/Tokyo"},
)

# Windows and watermarks
_add(
    "windows of another length",
    "windows",
    partial(q.windows, length="30 minutes"),
    MIGRATE,
    "keys-mean-another",
)
_add(
    "a longer delay", "windows", partial(q.windows, delay="1 hour"), FITS, "watermark-delay-changed"
)
_add(
    "a shorter delay",
    "windows",
    partial(q.windows, delay="1 minute"),
    FITS,
    "watermark-delay-changed",
)
_add(
    "sessions of another gap",
    "sessions",
    partial(q.sessions, gap="9 minutes"),
    MIGRATE,
    "keys-mean-another",
)


def _other_time(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    grouped = q.late(spark, folder, column="seen").groupBy(f.window("seen", "1 hour"), "user")
    return q.noop(grouped.agg(f.sum("amount").alias("total")), "append")


_add("a watermark on another column", "windows", _other_time, MIGRATE, "watermark-column-changed")


# Deduplication
def _unique_by(*columns: str, within: bool = False) -> q.Build:
    def build(spark: Any, folder: Path) -> Any:
        rows = q.late(spark, folder)
        found = (
            rows.dropDuplicatesWithinWatermark(list(columns))
            if within
            else rows.dropDuplicates(list(columns))
        )
        return q.noop(found, "append")

    return build


_add(
    "a dedup column removed",
    "unique",
    _unique_by("user", "at"),
    MIGRATE,
    "dedup-columns-changed",
    starts=False,
)
_add(
    "a dedup column added",
    "unique",
    _unique_by("user", "product", "at", "qty"),
    ANEW,
    "dedup-columns-changed",
    starts=False,
)
_add(
    "another dedup column",
    "unique-within",
    _unique_by("user", "qty", within=True),
    MIGRATE,
    "dedup-columns-changed",
    starts=False,
)
_add(
    "dedup columns reordered",
    "unique-within",
    _unique_by("product", "user", within=True),
    MIGRATE,
    "dedup-columns-changed",
)

# Joins
_add(
    "another type of join", "joined", partial(q.joined, kind="leftOuter"), ANEW, "join-type-changed"
)
_add(
    "another range of the join",
    "joined",
    partial(
        q.joined,
        condition="l.user = r.buyer AND r.there >= l.at AND r.there <= l.at + interval 2 hours",
    ),
    UNKNOWN,
    "join-condition-changed",
)
_add(
    "one more join key",
    "joined",
    partial(q.joined, condition="l.user = r.buyer AND l.at = r.there"),
    ANEW,
    "join-keys-changed",
    starts=False,
)
_add(
    "a join key of another type",
    "joined",
    partial(q.joined, condition="l.amount = r.qty"),
    MIGRATE,
    "join-keys-changed",
    starts=False,
)
_add(
    "one more column of a side",
    "joined",
    partial(q.joined, right=("user AS buyer", "at AS there", "qty", "places")),
    MIGRATE,
    "join-columns-changed",
    starts=False,
)
_add(
    "another column of a side",
    "joined",
    partial(q.joined, right=("user AS buyer", "at AS there", "places")),
    MIGRATE,
    "join-columns-changed",
)

# State of one's own
_add(
    "another group state",
    "groups",
    partial(q.groups, state="n long, sum double, last string"),
    MIGRATE,
    "group-state-changed",
    starts=False,
)
_add(
    "a group state renamed",
    "groups",
    partial(q.groups, state="n long, total double"),
    MIGRATE,
    "group-state-changed",
)
_add(
    "a function that counts twice",
    "groups",
    partial(q.groups, step=2),
    UNKNOWN,
    "state-function-changed",
)
_add(
    "no timeout any more",
    "groups",
    partial(q.groups, timeout="NoTimeout"),
    MIGRATE,
    "timeout-kind-changed",
    starts=False,
)
_add(
    "a timeout of event time",
    "groups",
    partial(q.groups, timeout="EventTimeTimeout"),
    MIGRATE,
    "timeout-kind-changed",
)
_add(
    "groups by another type",
    "groups",
    partial(q.groups, key="qty"),
    MIGRATE,
    "grouping-keys-changed",
    starts=False,
)
_TWS = {q.PROVIDER: q.ROCKSDB}
_add(
    "a variable added",
    "transformed",
    partial(q.transformed, more=True),
    UNKNOWN,
    "state-variables-changed",
    "state-function-changed",
    conf=_TWS,
)
_add(
    "a variable's schema",
    "transformed",
    partial(q.transformed, total="n long, m long"),
    MIGRATE,
    "state-variables-changed",
    starts=False,
    conf=_TWS,
)
_add(
    "a variable of another kind",
    "transformed",
    partial(q.transformed, kind="list"),
    MIGRATE,
    "state-variables-changed",
    starts=False,
    conf=_TWS,
)
_add(
    "another time mode",
    "transformed",
    partial(q.transformed, time_mode="ProcessingTime"),
    MIGRATE,
    "time-mode-changed",
    starts=False,
    conf=_TWS,
)
_add(
    "another output mode of it",
    "transformed",
    partial(q.transformed, mode="Append"),
    MIGRATE,
    "time-mode-changed",
    starts=False,
    conf=_TWS,
)


def _more_rows(spark: Any, folder: Path) -> Any:
    return q.noop(q.events(spark, folder).limit(7), "append")


_add("another limit", "limited", _more_rows, FITS, "limit-changed")

# Settings
_add(
    "more partitions",
    "totals",
    q.totals,
    FITS,
    "shuffle-partitions-pinned",
    conf={q.PARTITIONS: "5"},
)
_add(
    "another provider",
    "totals",
    q.totals,
    FITS,
    "state-provider-pinned",
    conf={q.PROVIDER: q.ROCKSDB},
)
_add(
    "another format of aggregations",
    "totals",
    q.totals,
    FITS,
    "state-format-pinned",
    conf={"spark.sql.streaming.aggregation.stateFormatVersion": "1"},
)
_add(
    "fewer partitions, not pinned",
    "offset-map",
    q.totals,
    MIGRATE,
    "partition-count-unpinned",
    conf={q.PARTITIONS: "1"},
)
_add(
    "more partitions, not pinned",
    "offset-map",
    q.totals,
    MIGRATE,
    "partition-count-unpinned",
    starts=False,
    conf={q.PARTITIONS: "5"},
)
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_add(
    "file names with ids",
    "transformed",
    q.transformed,
    MIGRATE,
    "checkpoint-format-changed",
    starts=False,
    conf={**_TWS, _FORMAT: "2"},
)
_add(
    "file names without ids",
    "ids",
    q.totals,
    MIGRATE,
    "checkpoint-format-changed",
    starts=False,
    conf={q.PROVIDER: q.ROCKSDB, _FORMAT: "1"},
)
_add(
    "a filter, batch in flight",
    "totals",
    _filtered_totals,
    UNKNOWN,
    "in-flight-under-new-code",
    spoil="in-flight",
)
_add(
    "an aggregate, batch in flight",
    "totals",
    _grouped(TOTALS[0]),
    MIGRATE,
    "aggregates-changed",
    starts=False,
    spoil="in-flight",
)

# Nothing
for _name, _old in q.OLD.items():
    _add(f"nothing: {_name}", _name, _old.build, SAME, conf=_old.conf)
