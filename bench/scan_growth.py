"""`scan` of 10, 100 and 1,000 checkpoints: time grows no faster than their number."""

from __future__ import annotations

import tempfile
from pathlib import Path

from measure import Claims, best, call_cpu_seconds, write_checkpoint

from floodmark import api


def main() -> None:
    claims = Claims()
    counts = (10, 100, 1000)
    with tempfile.TemporaryDirectory() as folder:
        roots = {count: Path(folder) / str(count) for count in counts}
        for count, root in roots.items():
            for number in range(count):
                write_checkpoint(root / f"team-{number % 7}" / f"stream-{number}", batches=10)
        seconds = best(
            3,
            *(
                lambda root=root: call_cpu_seconds(lambda: list(api.scan([str(root)])))
                for root in roots.values()
            ),
        )
        found = len(list(api.scan([str(roots[1000])])))
    assert found == 1000, found
    for count, time in zip(counts, seconds, strict=True):
        print(f"{count:5} checkpoints {time:7.3f} s, {time / count * 1000:.2f} ms each")
    # A tenth for noise: the claim is linear or better.
    claims.at_most("growth from 10 to 100, per checkpoint", seconds[1] / seconds[0] / 10, 1.1)
    claims.at_most("growth from 100 to 1,000, per checkpoint", seconds[2] / seconds[1] / 10, 1.1)
    claims.finish()


if __name__ == "__main__":
    main()
