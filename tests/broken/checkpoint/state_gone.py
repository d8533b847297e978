import json

from broken.damage import Tree, drop
from floodmark.checkpoint.start_note import packed_tree
from plan_trees import plan

FROM = "3.5/sales-hdfs"
NOTE = {
    "query_id": "5a0c362f-824f-43a3-940d-3be0f4a399fd",
    "run_id": "0d0ccd4c-6fd5-4e4c-8f3c-3a3d39d1f3c4",
    "next_batch": 0,
    "tree": packed_tree(plan()),
}


def damage(tree: Tree) -> None:
    drop(tree, *[path for path in tree if path.startswith("state/") and "/." not in path])
    tree["_floodmark/starts/0.json"] = json.dumps(NOTE).encode()
