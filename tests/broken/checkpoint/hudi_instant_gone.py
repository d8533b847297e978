from broken.damage import Tree
from floodmark.checkpoint.live_answers import LiveAnswers, Timeline

FROM = "4.2/delta"
OUTSIDE = LiveAnswers(
    timelines={"0": Timeline("s3://lake/orders", "20261116060000000", "20261116070000000")}
)


def damage(tree: Tree) -> None:
    """A stream from a Hudi table whose timeline begins after it."""
    for batch in (0, 1, 2):
        head, _, _ = tree[f"offsets/{batch}"].rpartition(b"\n")
        tree[f"offsets/{batch}"] = head + b'\n{"offsetCommitTime":"2026111605400%d000"}' % batch
