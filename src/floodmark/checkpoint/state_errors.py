"""The errors of state that cannot be rebuilt: what is missing, why, and what to do. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodmark.checkpoint.state_chain import Lack
from floodmark.errors import MalformedFile, PartitionsMissing, StateFileMissing, StatePurged

if TYPE_CHECKING:
    from floodmark.checkpoint.state_chain import PartitionCount, StoreChain

_WITHOUT_STATE = (
    "Restore the missing or changed files from a backup, or go on without any state: "
    "`floodmark upgrade CP NEW --without-state`."
)


def files_missing(chain: StoreChain) -> StateFileMissing | StatePurged:
    """Return why one version of a store cannot be rebuilt."""
    batch = chain.version - 1
    if chain.lack is Lack.FOLDER:
        # Spark never removes the newest version, so Spark did not empty this folder.
        return StateFileMissing(
            f"{chain.folder} has no state file",
            f"Batch {batch} left one in every partition, so the folder was lost or emptied.",
            _WITHOUT_STATE,
        )
    if chain.lack is Lack.PURGED:
        return StatePurged(
            f"{chain.folder}: the state after batch {batch} can no longer be rebuilt",
            f"It needs {chain.missing[0]} and the files after it. Spark has removed the oldest"
            " files (spark.sql.streaming.minBatchesToRetain).",
            "Choose a later batch.",
        )
    one = len(chain.missing) == 1
    return StateFileMissing(
        f"{chain.absent} {'is' if one else 'are'} missing",
        f"Batch {batch} left version {chain.version}, which needs {'it' if one else 'them'}:"
        " a version is the last snapshot and every change after it.",
        f"Restore the missing {'file' if one else 'files'} from a backup. `floodmark "
        "repair CP` goes back to a batch whose state does not need "
        f"{'it' if one else 'them'}, if there is one.",
    )


def partitions_missing(count: PartitionCount) -> PartitionsMissing:
    return PartitionsMissing(
        count.words,
        "A batch needs the state of every partition, so no batch can start from this "
        "state. Folders of the state are lost, or the entry was changed.",
        _WITHOUT_STATE,
    )


def table_missing(path: str) -> StateFileMissing:
    return StateFileMissing(
        f"{path} is missing",
        "A RocksDB snapshot needs it: it holds rows of the state.",
        "Restore the file from a backup, or choose a batch whose state does not need it.",
    )


def table_cut(path: str, found: int, size: int) -> MalformedFile:
    return MalformedFile(
        f"{path} has {found:,} bytes, but the snapshot says {size:,}",
        "The file is cut short, or belongs to another snapshot.",
        "Restore the file from a backup, or choose a batch whose state does not need it.",
    )
