"""Options of the writer that do not do what they look like."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from floodmark.engine.hadoop import qualified
from floodmark.engine.look import Objection, Situation

MISSPELT = "misspelt-checkpoint-option"
SECOND = "second-checkpoint"
NAMES = (MISSPELT, SECOND)
_OPTION = "checkpointlocation"
# Other options of writers that come close to the name and mean something else.
_MEANT = frozenset(
    {"asyncprogresstrackingcheckpointintervalms", "checkpointinterval", "checkpointtimeout"}
)


def judge(situation: Situation) -> Iterator[Objection]:
    options = situation.query.sink_options
    for key, value in options.items():
        if is_misspelt(key):
            yield Objection(
                MISSPELT,
                f"pipeline {situation.pipeline}: the writer has an option {key!r}, which Spark "
                "ignores",
                f"A query's checkpoint is the option checkpointLocation; nothing would be kept "
                f"in {value}, and a restart would begin from zero.",
                "Remove the option: the pipeline's own checkpoint is set for you.",
            )
    location = options.get(_OPTION)
    if location is not None and qualified(situation.spark, location) != situation.location:
        yield Objection(
            SECOND,
            f"pipeline {situation.pipeline}: the writer's checkpointLocation is {location}, the "
            f"pipeline's is {situation.location}",
            "A query has one checkpoint; the writer's would be replaced.",
            "Keep one of the two.",
        )


def is_misspelt(key: str) -> bool:
    """`checkPoint`, `checkpoint_location`, `checkpointLocaton`… but not the name itself."""
    plain = key.lower().replace("_", "").replace("-", "").replace(".", "").replace(" ", "")
    if key.lower() == _OPTION or plain in _MEANT:
        return False
    if plain in (_OPTION, "checkpoint", "checkpointdir", "checkpointpath", "checkpointdirectory"):
        return True
    return SequenceMatcher(None, plain, _OPTION).ratio() > 0.8
