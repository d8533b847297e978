from broken.starting import situation
from floodmark.errors import InUse

SITUATION = situation(in_use=InUse("in use by another run", "Two would write.", "Stop it."))
