from broken.meeting import meeting, source

MEETING = meeting(
    ('{"a":{"0":1}}', '{"b":{"0":2}}'),
    {"none": True},
    {"sources": (source("kafka", "b"), source("kafka", "a"))},
)
