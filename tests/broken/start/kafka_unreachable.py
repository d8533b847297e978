from broken.starting import outside

SITUATION = outside(kafka={}, silent={"0": "TimeoutException: no answer"})
