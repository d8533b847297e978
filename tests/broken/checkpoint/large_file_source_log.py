from broken.damage import Tree

FROM = "3.5/files"


def damage(tree: Tree) -> None:
    tree["sources/0/9.compact"] += b'\n{"path":"%s","timestamp":1,"batchId":9}' % (b"a" * 10_000_001)
