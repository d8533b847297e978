"""What a first start left behind is removed; storage that refuses hides no failure of the start."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from floodmark.engine.start import launch, remote
from floodmark.errors import CannotRead
from floodmark.storage.files import Files, open_files


class _Refusing:
    """A place that is read, and changed by nobody: a NameNode in safe mode."""

    def __init__(self, files: Files, error: Exception) -> None:
        self._files, self._error = files, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def delete(self, *_: object) -> None:
        raise self._error


@pytest.mark.parametrize("error", [Py4JError("safe mode"), ConnectionError("no JVM")])
def test_a_start_of_spark(error: Exception, tmp_path: Path) -> None:
    files = open_files(str(tmp_path))
    fs = _Refusing(files, error)
    path = SimpleNamespace(getFileSystem=lambda _conf: fs)
    hadoop = SimpleNamespace(fs=SimpleNamespace(Path=lambda _location: path))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)))
    state = SimpleNamespace(newHadoopConf=lambda: None)
    spark = SimpleNamespace(_jvm=jvm, _jsparkSession=SimpleNamespace(sessionState=lambda: state))
    saved = SimpleNamespace(exists=False)
    starting: Any = SimpleNamespace(
        saved=saved, files=files, spark=spark, location="hdfs://host/ck"
    )
    launch.remove_half_made(starting)


def test_a_start_through_a_remote_session(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text("{}")
    files: Any = _Refusing(open_files(str(tmp_path)), CannotRead("metadata: safe mode", "", ""))
    saved: Any = SimpleNamespace(exists=False)
    remote._remove_half_made(files, saved)
    assert (tmp_path / "metadata").exists()
