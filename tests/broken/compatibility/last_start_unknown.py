from broken.meeting import meeting

MEETING = meeting(old={"none": True})
