from broken.meeting import meeting

MEETING = meeting(fingerprint="b")
