from broken.starting import situation
from floodmark.rules.start_inputs.situation import ABORTABLE

SITUATION = situation(
    location="s3a://bucket/checkpoint", writer_checkpoint=None, file_manager=ABORTABLE
)
