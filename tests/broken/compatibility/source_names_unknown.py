from dataclasses import replace

from broken.meeting import meeting, source

MEETING = meeting(new={"sources": (replace(source(), name="orders"),)})
