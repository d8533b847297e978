"""Property tests here are about what comes out; how fast a busy machine is says nothing."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("state", deadline=None)
settings.load_profile("state")
