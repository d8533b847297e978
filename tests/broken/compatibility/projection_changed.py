from broken.meeting import aggregate, meeting
from floodmark.checkpoint.outline import PlanNode

MEETING = meeting(new={"nodes": (PlanNode("Project", {"columns": ["user"]}), aggregate())})
