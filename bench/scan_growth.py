"""`scan` of 10, 100 and 1,000 checkpoints: time grows no faster than their number.

The same 1,000 checkpoints are scanned ten, a hundred and a thousand at a time, so that each
measure reads the same files and only the size of a scan differs: a small scan alone would be
flattered by the processor's caches.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from measure import Claims, best, call_cpu_seconds, write_checkpoint

from floodmark import api

ALL = 1000


def scan_each(roots: list[Path]) -> int:
    return sum(len(list(api.scan([str(root)]))) for root in roots)


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder)
        for number in range(ALL):
            place = whole / f"company-{number // 100}" / f"team-{number // 10 % 10}"
            write_checkpoint(place / f"stream-{number}", batches=10)
        hundreds = sorted(whole.iterdir())
        tens = [team for company in hundreds for team in sorted(company.iterdir())]
        for roots in (tens, hundreds, [whole]):
            assert scan_each(roots) == ALL
        by_ten, by_hundred, at_once = best(
            5,
            *(
                partial(call_cpu_seconds, partial(scan_each, roots))
                for roots in (tens, hundreds, [whole])
            ),
        )
    for count, seconds in ((10, by_ten), (100, by_hundred), (ALL, at_once)):
        print(f"{count:5} at a time: {seconds / ALL * 1000:.2f} ms a checkpoint")
    # The claim is linear or better; the rest is for noise.
    claims.at_most("a checkpoint's time from 10 to 100 at a time", by_hundred / by_ten, 1.3)
    claims.at_most("a checkpoint's time from 100 to 1,000 at a time", at_once / by_hundred, 1.3)
    claims.finish()


if __name__ == "__main__":
    main()
