from broken.meeting import meeting
from floodmark.checkpoint.outline import PlanNode

BEFORE, AFTER = (PlanNode("GlobalLimit", {"limit": number}) for number in ("5", "7"))
MEETING = meeting(old={"nodes": (BEFORE,)}, new={"nodes": (AFTER,)})
