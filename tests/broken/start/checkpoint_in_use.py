from broken.starting import situation
from floodmark.rules.start_inputs.situation import LeaseHolder

SITUATION = situation(holder=LeaseHolder("in use by another run", "Two would write.", "Stop it."))
