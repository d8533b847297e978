from broken.starting import situation

SITUATION = situation(
    location="abfss://box@account/checkpoint", speculates=True, writer_checkpoint=None
)
