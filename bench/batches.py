"""10,000 batches through `batches`, beside a bare loop over the same files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from measure import (
    FLOODMARK,
    Claims,
    best,
    call_cpu_seconds,
    command_seconds,
    peak_memory_mb,
    write_checkpoint,
)

from floodmark import api

BATCHES = 10_000


def bare_loop(checkpoint: Path) -> int:
    """What someone without floodmark would write first."""
    documents = 0
    for log in ("offsets", "commits"):
        for path in sorted((checkpoint / log).iterdir(), key=lambda path: int(path.name)):
            with open(path) as file:
                for line in file.read().split("\n")[1:]:
                    json.loads(line)
                    documents += 1
    return documents


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = write_checkpoint(Path(folder) / "checkpoint", BATCHES)
        ours, bare = best(
            5,
            lambda: call_cpu_seconds(lambda: api.batches(str(checkpoint))),
            lambda: call_cpu_seconds(lambda: bare_loop(checkpoint)),
        )
        assert len(api.batches(str(checkpoint))) == BATCHES
        whole = command_seconds([FLOODMARK, "batches", str(checkpoint)])
    print(f"batches {ours:.3f} s, bare loop {bare:.3f} s, the whole command {whole:.3f} s")
    claims.at_most("times a bare loop of open and json.loads", ours / bare, 1.0)
    claims.at_most("MB of memory", peak_memory_mb(), 100)
    claims.finish()


if __name__ == "__main__":
    main()
