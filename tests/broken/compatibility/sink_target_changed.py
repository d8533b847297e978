from broken.meeting import meeting

MEETING = meeting(
    old={"sink": "kafka", "sink_options": {"topic": "totals"}},
    new={"sink": "kafka", "sink_options": {"topic": "sums"}},
)
