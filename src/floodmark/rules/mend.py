"""Names what `repair` can do about a finding. A rule names the mends that it offers."""

from __future__ import annotations

from enum import Enum, auto


class Mend(Enum):
    """One way to repair. A function in `changes/repair` carries it out, found by this name."""

    IDENTITY = auto()
    """Writes `metadata` again, with the query's id."""
    LEFTOVERS = auto()
    """Removes temporary files."""
    FIRST_START = auto()
    """Empties the folders that must be empty before Spark's first batch."""
    LONE_SIDE_FILE = auto()
    """Removes a checksum whose file is missing."""
    SIDE_FILE = auto()
    """Writes Hadoop's checksums of a file again."""
    CHECKSUM = auto()
    """Removes Spark's own checksum of a state file if the checksum is wrong and not the file."""
    OFFSET_ENTRY = auto()
    """Writes a stand-in for an offset entry that Spark opens but does not use."""
    OLDER_COMMITS = auto()
    """Derives the commits of batches that later entries prove to be finished."""
    NEWEST_COMMIT = auto()
    """Derives the commit before the newest planned batch."""
    REPARTITION = auto()
    """Removes what an unfinished repartition has written."""
    SEEN_FILES = auto()
    """Rebuilds a file source's list."""
    SOURCE_START = auto()
    """Derives or removes the file with a source's start position."""
    SOURCE_SNAPSHOT = auto()
    """Writes the current snapshot into the file with an Iceberg source's start position."""
    SCHEMA_PATHS = auto()
    """Corrects the schema paths in operator metadata."""
    PARTITION_COUNT = auto()
    """Writes the number of partitions into offset entries."""
    SETTINGS = auto()
    """Writes the settings that the state files prove into offset entries."""
    DESCRIPTION = auto()
    """Removes an unreadable schema or operator metadata: Spark writes it again."""
    STATE = auto()
    """Reads the whole state, then decides what to do."""
    LOST_STATE = auto()
    """Restores the whole state from a backup."""
    GO_BACK = auto()
    """Takes the stream back to the newest whole batch."""
