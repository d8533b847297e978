from broken.meeting import meeting

MEETING = meeting(batches=(3, 7))
