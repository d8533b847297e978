from broken.starting import situation

SITUATION = situation(location="s3a://bucket/checkpoint", writer_checkpoint=None)
