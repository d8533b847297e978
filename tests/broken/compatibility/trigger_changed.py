from broken.meeting import meeting

MEETING = meeting(new={"trigger": "AvailableNowTrigger"})
