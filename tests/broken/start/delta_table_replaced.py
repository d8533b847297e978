from broken.starting import outside
from floodmark.checkpoint.live_answers import TableLog

SITUATION = outside(tables={"1": TableLog("/lake/orders", "c3d4", 5, 9)})
