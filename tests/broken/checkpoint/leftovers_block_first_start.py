from broken.damage import Tree, drop

FROM = "3.5/in-flight-first"


def damage(tree: Tree) -> None:
    drop(tree, "offsets/0")
    tree["offsets/.0.27a9afcf-0a29-40d8-9ec4-8b3d8c4b8f1c.tmp"] = b"v1"
