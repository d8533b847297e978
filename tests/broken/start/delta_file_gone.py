from broken.starting import outside
from floodmark.checkpoint.live_answers import TableLog

SITUATION = outside(tables={"1": TableLog("/lake/orders", "a1b2", 5, 9, ("part-7-0.parquet",))})
