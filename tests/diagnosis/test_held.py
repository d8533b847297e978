"""What is gathered of a checkpoint for the rules, and which packages that needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark import errors
from floodmark.diagnosis.held import gather_held
from floodmark.errors import ExtraMissing
from floodmark.storage.files import open_files
from floodmark.storage.load import load

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"


@pytest.mark.parametrize(("name", "needs"), [("windowed", True), ("sales-hdfs", False)])
def test_only_windows_in_the_state_need_the_state_extra(
    name: str, needs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install 'floodmark[spark]'` is enough for `check`, unless state has to be read."""
    files = open_files(str(GOLDEN / name / "checkpoint"))
    monkeypatch.setattr(errors, "_OF_STATE", ("no_such_package",))
    if needs:
        with pytest.raises(ExtraMissing, match="no_such_package") as raised:
            gather_held(files, load(files))
        assert "pip install 'floodmark[state]'" in raised.value.do
        assert raised.value.status == 2
    else:
        assert gather_held(files, load(files)).held
    assert gather_held(files, load(files), look=False).held
