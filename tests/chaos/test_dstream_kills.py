"""DStreams that are killed with SIGKILL lose nothing and count nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.dstream_campaign import Campaign


@pytest.mark.spark
def test_one_kill(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "one", seed=19)
    campaign.run(kills=1)
    assert campaign.files > 3


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_twenty_kills(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "twenty", seed=2026)
    campaign.run(kills=20)
    print(f"20 kills after {campaign.lived} s, {campaign.files} files, {campaign.oracle}")
