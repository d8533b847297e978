"""Reads and writes the bytes of state files: deltas, snapshots, RocksDB's zips and changelogs."""
