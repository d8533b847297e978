from broken.starting import outside
from floodmark.checkpoint.live_answers import Bounds

SITUATION = outside(kafka={"0": {"orders": {0: Bounds(8, 20), 1: Bounds(0, 20)}}})
