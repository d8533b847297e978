from dataclasses import replace

from broken.meeting import meeting, source

MEETING = meeting(new={"sources": (replace(source(), schema_ddl="user STRING"),)})
