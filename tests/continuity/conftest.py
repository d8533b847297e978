"""Puts this folder's own modules in reach, whichever way pytest was told to import."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
