"""`lint` of 1,000 Python files beside `python -m compileall` of the same files."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from measure import FLOODMARK, Claims, best

FILES = 1000
STREAM = '''
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()


def totals_{n}(frame):
    """Sums by customer, {n}."""
    return frame.groupBy("customer").agg(F.sum("amount").alias("total"))


def main():
    orders = spark.readStream.schema("customer STRING, amount LONG").json("s3://lake/orders-{n}")
    writer = totals_{n}(orders).writeStream.format("delta").outputMode("complete")
    writer.option("checkpointLocation", "s3://lake/checkpoints/{n}").start("s3://lake/totals-{n}")
'''
PLAIN = """
class Account{n}:
    def __init__(self, owner, balance=0):
        self.owner, self.balance = owner, balance

    def move(self, amount, *others):
        for other in others:
            if self.balance < amount:
                raise ValueError(f"{{self.owner}} has only {{self.balance}}")
            self.balance -= amount
            other.balance += amount
        return {{account.owner: account.balance for account in (self, *others)}}
"""


def write_sources(folder: Path) -> None:
    """As in a repository: one file in ten has a stream, the others have other things to do."""
    for number in range(FILES):
        text = STREAM.format(n=number) if number % 10 == 0 else PLAIN.format(n=number) * 6
        place = folder / f"package_{number % 20}" / f"module_{number}.py"
        place.parent.mkdir(exist_ok=True, parents=True)
        place.write_text(text)


def cpu_seconds(command: list[str]) -> float:
    import resource
    import subprocess

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Linting ends with 1 where it finds something, which is what it is for.
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "src"
        write_sources(sources)

        def compile_all() -> float:
            for cache in sources.rglob("__pycache__"):
                shutil.rmtree(cache)
            return cpu_seconds([sys.executable, "-m", "compileall", "-q", str(sources)])

        compiled, linted = best(
            3, compile_all, lambda: cpu_seconds([FLOODMARK, "lint", str(sources)])
        )
    print(f"compileall {compiled:.2f} s, lint {linted:.2f} s, {FILES} files")
    claims.at_most("lint, in runs of compileall", linted / compiled, 5)
    claims.finish()


if __name__ == "__main__":
    main()
