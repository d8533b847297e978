"""State files as bytes: deltas, snapshots, RocksDB's zips and changelogs."""
