"""A driver without Spark: the same lease, the same ledger, and logs that are created atomically.

It starts within a second, so that very many can be paused. Each is a machine of its own: its
boot id is its own, and its clock is off by as much as it is told.

    small_driver.py PLACE STORAGE-OPTIONS DATABASE BATCHES CLOCK-OFF
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from dataclasses import replace
from typing import Any

import sqlalchemy

from floodmark.checkpoint.layout import batch_id
from floodmark.engine.sinks.ledger import LEDGER, Entry, Ledger
from floodmark.engine.start import lease as leases
from floodmark.errors import InUse, Superseded
from floodmark.storage import lease_files as holder
from floodmark.storage.files import Files, open_files

ROWS = 4
FINISHED, IN_USE, SUPERSEDED = 0, 4, 5


def be_another_machine(clock_off: float) -> None:
    here, boot = time.time, uuid.uuid4().hex
    time.time = lambda: here() + clock_off
    leases.BEAT_SECONDS = 0.2
    # Holders are watched for seven beats, as ever.
    holder.STANDS_STILL_SECONDS, holder._POLL_SECONDS = 1.4, 0.1
    original = leases.new_holder
    leases.new_holder = lambda *told: replace(original(*told), boot=boot)  # type: ignore[assignment]


def next_batch(files: Files) -> int:
    found = [batch_id(name) for name in files.level("commits").files]
    return max((number for number in found if number is not None), default=-1) + 1


def insert(batch: int) -> Any:
    statement = sqlalchemy.text("INSERT INTO sink VALUES (:batch, :row)")

    def write(connection: Any) -> None:
        for row in range(ROWS):
            time.sleep(random.uniform(0, 0.03))
            connection.execute(statement, {"batch": batch, "row": row})

    return write


def run(files: Files, database: str, batches: int) -> int:
    try:
        lease = leases.take(files, "small", None)
    except InUse:
        return IN_USE
    lease.hold(lambda: True)
    book = Ledger(database, LEDGER)
    while (batch := next_batch(files)) < batches:
        files.create(f"offsets/{batch}", b"planned")
        time.sleep(random.uniform(0, 0.05))
        try:
            lease.require()
            book.write(Entry("small", batch, chain=lease.chain, epoch=lease.epoch), insert(batch))
        except Superseded:
            return SUPERSEDED
        time.sleep(random.uniform(0, 0.05))
        if not files.create(f"commits/{batch}", b"committed") and lease.superseded():
            return SUPERSEDED
        # Else it was the last write of a paused run, under way before this one took over: Spark
        # says "Multiple streaming jobs detected" and is started again, which goes on from here.
    lost = lease.superseded()
    lease.release()
    return SUPERSEDED if lost else FINISHED


if __name__ == "__main__":
    place, options, database, batches, clock_off = sys.argv[1:]
    be_another_machine(float(clock_off))
    sys.exit(run(open_files(place, json.loads(options)), database, int(batches)))
