import json

from broken.damage import Tree

FROM = "4.2/kafka"


def damage(tree: Tree) -> None:
    note = {"sources": [{"kind": "iceberg"}], "next_batch": 0}
    tree["_floodmark/starts/1.json"] = json.dumps(note).encode()
