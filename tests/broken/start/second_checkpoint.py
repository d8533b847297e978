from broken.starting import situation

SITUATION = situation(writer_checkpoint="file:/checkpoints/other")
