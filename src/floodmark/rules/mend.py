"""What `repair` can do about a finding. A rule names the mends that it offers."""

from __future__ import annotations

from enum import Enum, auto


class Mend(Enum):
    """Each is carried out by a function in `changes/repair`, which looks for it by this name."""

    IDENTITY = auto()
    """`metadata` is written again, with the query's id."""
    LEFTOVERS = auto()
    """Temporary files are removed."""
    FIRST_START = auto()
    """Folders that Spark wants empty before its first batch are emptied."""
    LONE_SIDE_FILE = auto()
    """A checksum whose file is gone is removed."""
    SIDE_FILE = auto()
    """Hadoop's checksums of a file are made anew."""
    CHECKSUM = auto()
    """Spark's own checksum of a state file is removed where it, and not the file, is wrong."""
    OFFSET_ENTRY = auto()
    """An offset entry that Spark opens and does not use gets a stand-in."""
    OLDER_COMMITS = auto()
    """Commits of batches that later entries prove to be finished are derived."""
    NEWEST_COMMIT = auto()
    """The commit before the newest planned batch is derived."""
    REPARTITION = auto()
    """What a repartition has begun is removed."""
    SEEN_FILES = auto()
    """A file source's list is put together again."""
    SOURCE_START = auto()
    """The file that says where a source began is derived or removed."""
    SOURCE_SNAPSHOT = auto()
    """The file that says where an Iceberg source began names the snapshot in which it stands."""
    SCHEMA_PATHS = auto()
    """Operator metadata names its schemas where they are now."""
    PARTITION_COUNT = auto()
    """Offset entries say how many partitions the state has."""
    SETTINGS = auto()
    """Offset entries say the settings that the state files prove."""
    DESCRIPTION = auto()
    """A schema or operator metadata that cannot be read is removed: Spark writes it anew."""
    STATE = auto()
    """The state is read in full before it is decided what to do."""
    LOST_STATE = auto()
    """All of the state is restored from a backup."""
    GO_BACK = auto()
    """The stream goes back to the newest batch that is whole."""
