from broken.damage import Tree, put
from floodmark.state.files.compression import compress, decompress

FROM = "4.2/dstreams"
TEN, TWO = (seconds.to_bytes(8, "big") for seconds in (10_000, 2_000))


def damage(tree: Tree) -> None:
    for path in [path for path in tree if path.startswith("checkpoint-")]:
        put(tree, path, compress(decompress(tree[path]).replace(TEN, TWO)))
