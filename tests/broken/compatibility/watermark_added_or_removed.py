from broken.meeting import aggregate, meeting
from floodmark.checkpoint.outline import PlanNode

AFTER = PlanNode("EventTimeWatermark", {"column": "at", "delay_ms": 600_000})
MEETING = meeting(new={"nodes": (aggregate(), AFTER)})
