from broken.meeting import meeting, source

MEETING = meeting(new={"sources": (source("kafka", "orders"),)})
