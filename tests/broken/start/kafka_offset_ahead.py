from broken.starting import outside
from floodmark.checkpoint.live_answers import Bounds

SITUATION = outside(kafka={"0": {"orders": {0: Bounds(0, 3), 1: Bounds(0, 20)}}})
