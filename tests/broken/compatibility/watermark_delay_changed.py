from broken.meeting import aggregate, meeting
from floodmark.checkpoint.outline import PlanNode

BEFORE = PlanNode("EventTimeWatermark", {"column": "at", "delay_ms": 600_000})
AFTER = PlanNode("EventTimeWatermark", {"column": "at", "delay_ms": 60_000})
MEETING = meeting(old={"nodes": (aggregate(), BEFORE)}, new={"nodes": (aggregate(), AFTER)})
