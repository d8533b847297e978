from broken.meeting import meeting

FORMAT = "spark.sql.streaming.aggregation.stateFormatVersion"
MEETING = meeting(new={"conf": {FORMAT: "1"}})
