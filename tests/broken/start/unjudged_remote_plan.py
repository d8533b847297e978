from broken.starting import situation

SITUATION = situation(remote_changes=("another plan",))
