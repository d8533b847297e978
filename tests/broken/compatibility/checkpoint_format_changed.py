from broken.meeting import meeting

MEETING = meeting(unique_ids=True)
