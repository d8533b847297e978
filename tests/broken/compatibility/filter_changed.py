from broken.meeting import aggregate, meeting
from floodmark.checkpoint.outline import PlanNode

MEETING = meeting(new={"nodes": (aggregate(), PlanNode("Filter", {"condition": "(qty > 1)"}))})
