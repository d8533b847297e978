from broken.starting import situation

SITUATION = situation(location="s3a://bucket/checkpoint", speculates=True, writer_checkpoint=None)
