from broken.starting import SOUND, situation

assert SOUND.checkpoint is not None
KEY, PINNED = next(iter(SOUND.checkpoint.conf.items()))
SITUATION = situation(conf={KEY: f"{PINNED}0"})
