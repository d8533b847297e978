from broken.meeting import meeting, schema

MEETING = meeting(new={"schema_json": schema("user string, total long")})
