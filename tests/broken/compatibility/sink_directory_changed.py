from broken.meeting import meeting

MEETING = meeting(new={"sink_options": {"path": "/elsewhere"}})
