"""What is killed: a source, a shape of query, a state provider and a sink."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.drills.points import POINTS, Point

_PROVIDER = "org.apache.spark.sql.execution.streaming.state."
_CONF = {
    "none": {},
    "hdfs": {
        "spark.sql.streaming.stateStore.providerClass": _PROVIDER + "HDFSBackedStateStoreProvider"
    },
    "rocksdb": {
        "spark.sql.streaming.stateStore.providerClass": _PROVIDER + "RocksDBStateStoreProvider"
    },
    "rocksdb-changelog": {
        "spark.sql.streaming.stateStore.providerClass": _PROVIDER + "RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
}


@dataclass(frozen=True)
class Scenario:
    source: str
    """files, kafka or delta"""
    shape: str
    """all (stateless), totals (an aggregate) or distinct (a deduplication)"""
    state: str
    """none, hdfs, rocksdb or rocksdb-changelog"""
    sink: str
    """delta, parquet (Spark's own sinks), delta-batch (once.delta) or postgres (once.sql)"""

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return f"{self.source}-{self.shape}-{self.state}-{self.sink}"

    @property
    def conf(self) -> dict[str, str]:
        return _CONF[self.state]

    @property
    def stateful(self) -> bool:
        return self.state != "none"

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(one for one in POINTS if self.stateful or one is not Point.DURING_STATE)

    def holds(self, point: Point) -> bool:
        """Whether the application itself can wait there; Spark's own sink cannot."""
        return point in {
            "postgres": (Point.DURING_SINK, Point.AFTER_SINK),
            "delta-batch": (Point.AFTER_SINK,),
        }.get(self.sink, ())


def matrix() -> tuple[Scenario, ...]:
    """Every source into every sink, stateless and with both providers.

    The two stateful shapes and the two ways to keep RocksDB's changes take turns, so that
    each meets each source and each sink without the matrix growing fourfold.
    """
    found = []
    for turn, source in enumerate(("files", "kafka", "delta")):
        for step, sink in enumerate(("delta", "delta-batch", "postgres")):
            shapes = ("totals", "distinct")
            rocksdb = ("rocksdb", "rocksdb-changelog")[(turn + step) % 2]
            found += [
                Scenario(source, "all", "none", sink),
                Scenario(source, shapes[(turn + step) % 2], "hdfs", sink),
                Scenario(source, shapes[(turn + step + 1) % 2], rocksdb, sink),
            ]
    return tuple(found)
