"""Asks a Hudi table which commits its active timeline still has.

Completed actions are files: `.hoodie/<instant>.commit` and, since 1.0,
`.hoodie/timeline/<requested>_<completed>.commit`. Older ones are archived, where an incremental
read does not look for them.
"""

from __future__ import annotations

import re

from floodmark.checkpoint.live_answers import LiveAnswers, Timeline
from floodmark.connectors.live import Question
from floodmark.errors import CannotRead, NoAnswer
from floodmark.storage.files import Files

FOLDER = ".hoodie"
_COMPLETED = re.compile(r"(?:\d{14,17}_)?(\d{14,17})\.(?:commit|deltacommit|replacecommit)")


def ask(question: Question) -> LiveAnswers:
    source = question.source
    place = source.options.get("path")
    if not place:
        raise CannotRead("the location of its table is not known (--table PATH)")
    return LiveAnswers(timelines={source.position.id: _timeline(question.opened(place), place)})


def _timeline(files: Files, place: str) -> Timeline:
    now, before = files.level(f"{FOLDER}/timeline").files, files.level(FOLDER).files
    if not now and not before:
        raise NoAnswer(
            f"{place} is not a Hudi table: it has no {FOLDER}. The table was dropped or "
            "is elsewhere"
        )
    names = now if any(map(_COMPLETED.fullmatch, now)) else before
    instants = sorted(match[1] for name in names if (match := _COMPLETED.fullmatch(name)))
    if not instants:
        return Timeline(place, None, None)
    return Timeline(place, instants[0], instants[-1])
