from broken.meeting import meeting, source

MEETING = meeting(new={"sources": (source(maxfilespertrigger="5"),)})
