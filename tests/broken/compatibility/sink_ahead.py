from broken.meeting import meeting

MEETING = meeting(sink_batch=40)
