"""Finds one checkpoint that two queries use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from floodmark.checkpoint.places.plain_place import plain_place
from floodmark.rules.code.facts import Code, Option, Stream
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM205",
    "shared-checkpoint",
    Severity.ERROR,
    finds="Two queries with the same checkpointLocation, in one file or, for absolute paths, in "
    "two; or a for loop that starts queries on one.",
    matters="A checkpoint belongs to one query: it holds one list of sources, one count of "
    "batches, one state.",
    restart="Both write the same batch numbers. One fails with CONCURRENT_STREAM_LOG_UPDATE, or "
    "reads the other's offsets as its own.",
    instead="Use a separate folder for each query: …/checkpoints/orders, …/checkpoints/clicks.",
)


def check_together(codes: Sequence[Code]) -> Iterator[Finding]:
    users: dict[str, list[tuple[Code, Stream, Option]]] = defaultdict(list)
    for code in codes:
        for stream in code.streams:
            option = stream.checkpoint
            if option is None or stream.started_at is None:
                continue
            if stream.loop and not stream.loop & option.value.names:
                yield RULE.finding(
                    code.path,
                    "A loop starts several queries, all on this checkpoint.",
                    line=option.line,
                )
            if option.value.literal:
                users[plain_place(option.value.literal)].append((code, stream, option))
    for place, found in users.items():
        for at, (code, stream, option) in enumerate(found):
            for other_code, other, other_option in found[:at]:
                if _both(code, stream, other_code, other, place):
                    yield RULE.finding(
                        code.path,
                        f"The query at {other_code.path}:{other_code.place(other_option.line)} "
                        f"has the same checkpoint, {option.value.literal}.",
                        line=option.line,
                    )
                    break


def check_starts(checkpoints: Sequence[tuple[str, str, str]]) -> Iterator[Finding]:
    """Check an application's pipelines: name, checkpoint, and one name for the place."""
    first: dict[str, str] = {}
    for name, checkpoint, place in checkpoints:
        if place in first:
            yield RULE.finding(
                checkpoint,
                f"pipelines {first[place]} and {name} have one checkpoint: {checkpoint}",
                why="A checkpoint belongs to one query: each would run the other's batches.",
                do="Give each its own folder.",
            )
        first.setdefault(place, name)


def _made_anew(code: Code, before: Stream, after: Stream, place: str) -> bool:
    """Whether the code deletes the checkpoint after the one query and before the other."""
    return any(
        before.line < deletion.line < after.line
        and any(plain_place(word) == place for word in deletion.target.pattern.split())
        for deletion in code.deletions
    )


def _both(code: Code, stream: Stream, other_code: Code, other: Stream, place: str) -> bool:
    same = stream.destination == other.destination
    if code is not other_code:
        # Two files that write to one place are two versions of one query. A relative path is
        # another folder for another application.
        known = stream.destination is not None and other.destination is not None
        return known and not same and (place.startswith("/") or "://" in place)
    if stream.line == other.line or _made_anew(code, other, stream, place):
        return False
    if same and (code.is_notebook or any(other.line < at < stream.line for at in code.waits)):
        return False  # one query, stopped and started again
    arms = dict(other.branches)
    return not any(arms.get(branch, arm) != arm for branch, arm in stream.branches)
