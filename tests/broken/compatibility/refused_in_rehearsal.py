from broken.meeting import meeting
from floodmark.rules.restarts.rehearsal import Rehearsal

MEETING = meeting(rehearsal=Rehearsal(False, 8, True, None, "no such thing"))
