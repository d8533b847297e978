from broken.damage import Tree

FROM = "3.5/sales-hdfs"
UNLISTED = {"state/0/1": "a link: links inside a folder are not followed"}


def damage(tree: Tree) -> None:
    for path in [path for path in tree if path.startswith("state/0/1/")]:
        del tree[path]
