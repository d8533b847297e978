"""Finds code that deletes its own checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from floodmark.rules.code.changing_paths import changing_calls, temporary_calls
from floodmark.rules.code.facts import Code, Deletion
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM218",
    "checkpoint-deleted-by-code",
    Severity.ERROR,
    finds="shutil.rmtree, dbutils.fs.rm, a file system's delete or a shell's rm on a checkpoint.",
    matters="Deleting the checkpoint makes the error go away together with the state and the "
    "place in the source.",
    restart="The query starts over: sums start at zero, and records are skipped or read again.",
    instead="`floodmark doctor` says what is wrong with it, `floodmark upgrade` goes on after "
    "its last committed batch.",
)
_LOOKS = re.compile(r"check_?point|(^|[/_.-])chk|(^|[/_])ckpt", re.IGNORECASE)


def check(code: Code) -> Iterator[Finding]:
    places = {
        option.value.literal.rstrip("/")
        for option in (
            *(stream.checkpoint for stream in code.streams if stream.checkpoint),
            *code.dstreams.directories,
        )
        if option.value.literal
    }
    for deletion in code.deletions:
        if _is_checkpoint(deletion, places):
            yield RULE.finding(
                code.path, f"{deletion.how} deletes a checkpoint.", line=deletion.line
            )


def _is_checkpoint(deletion: Deletion, places: set[str]) -> bool:
    target = deletion.target
    if changing_calls(target) or temporary_calls(target):
        return False  # the folder is only for this run: no restart looks for it
    literal = (target.literal or "").rstrip("/")
    if literal and any(place == literal or place.startswith(literal + "/") for place in places):
        return True
    if any(place in target.pattern.split() for place in places):
        return True  # a word in a shell command
    words = [target.pattern, *target.names]
    # `rm` of a single file with such a name, as a model's weights, is not about checkpoints.
    return any(_LOOKS.search(word) for word in words) and not literal.endswith(_WEIGHTS)


_WEIGHTS = (".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".ipynb_checkpoints")
