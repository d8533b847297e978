from broken.starting import outside

SITUATION = outside(kafka={"0": {}})
