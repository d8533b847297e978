from broken.meeting import meeting, source

MEETING = meeting(
    ('{"orders":{"0":1}}',),
    {"sources": (source("kafka", "orders"),)},
    {"sources": (source("kafka", "bills"),)},
)
