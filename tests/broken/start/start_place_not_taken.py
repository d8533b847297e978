from broken.starting import situation

SITUATION = situation(handed_over=(7,))
