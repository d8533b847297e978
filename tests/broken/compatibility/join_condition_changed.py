from broken.meeting import join, meeting
from floodmark.checkpoint.outline import PlanNode

BEFORE = PlanNode("Join", {"type": "Inner", "condition": "(a = b)", "streams": True})
AFTER = PlanNode("Join", {"type": "Inner", "condition": "(a = c)", "streams": True})
MEETING = meeting(held=(join(),), old={"nodes": (BEFORE,)}, new={"nodes": (AFTER,)})
