from broken.meeting import meeting

MEETING = meeting(new={"sink": "memory", "sink_options": {}})
