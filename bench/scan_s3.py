"""`scan` of 100, 1,000 and 10,000 checkpoints on S3 by listings: requests a checkpoint.

    python bench/scan_s3.py [--checkpoints 100,1000,10000]

The server is a real one, s3proxy, on this machine: `make services` fetches it. What S3 bills is
counted, the pages of listings and the files that are read. It must not grow with the number.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from measure import Claims, s3_server, write_checkpoint

from floodmark import api

COUNTS = (100, 1_000, 10_000)
A_TEAM = 100
MOST = 6.0


def scanned(server: Any, count: int) -> tuple[float, float]:
    """Requests and seconds a checkpoint."""
    place = server.place("scan")
    for number in range(count):
        team = server.objects(place) / f"team-{number // A_TEAM}"
        write_checkpoint(team / f"stream-{number}", batches=3)
    begun = time.perf_counter()
    with server.requests() as sent:
        found = sum(1 for _ in api.scan(place, server.storage_options))
    if found != count:
        raise SystemExit(f"{found} of {count} checkpoints were found")
    taken = time.perf_counter() - begun
    print(f"{count:6,}: {sent.total() / count:.3f} requests, {taken / count * 1000:.1f} ms each")
    return sent.total() / count, taken / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoints", default=",".join(map(str, COUNTS)))
    counts = [int(one) for one in parser.parse_args().checkpoints.split(",")]
    claims = Claims()
    with s3_server() as server:
        found = [(count, scanned(server, count)) for count in counts]
    requests = [(count, sent) for count, (sent, _) in found]
    claims.grows("scan on S3", "checkpoints", "requests each", requests)
    most = counts[-1]
    claims.at_most(f"requests a checkpoint, of {most:,}", requests[-1][1], MOST)
    ratio = requests[-1][1] / requests[0][1]
    claims.at_most(f"requests a checkpoint, {most:,} over {counts[0]:,}", ratio, 1.1)
    claims.finish()


if __name__ == "__main__":
    main()
