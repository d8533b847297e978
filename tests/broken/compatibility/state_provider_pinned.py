from broken.meeting import meeting

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
MEETING = meeting(new={"conf": {PROVIDER: "a.b.RocksDBStateStoreProvider"}})
