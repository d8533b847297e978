"""Before DStreams start, without Spark: who holds the folder, where it lies, which settings."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import floodmark
import samples
from floodmark.engine.dstreams.before_start import judge_dstream
from floodmark.engine.dstreams.context_recovery import _file_taken
from floodmark.engine.dstreams.declaration import dstream
from floodmark.engine.dstreams.runtime import _session
from floodmark.engine.run.runtime import RunOptions
from floodmark.engine.start.before_start import IN_USE
from floodmark.engine.start.lease import PATH, Holder, render
from floodmark.errors import Refused
from floodmark.storage.files import WritableFiles, open_files
from floodmark.storage.machine.process import host_name, process
from rules.examples import golden

NONE: frozenset[str] = frozenset()
LOG = "spark.streaming.receiver.writeAheadLog.enable"


def _spark(master: str = "local[2]", **conf: str) -> Any:
    settings = SimpleNamespace(get=lambda key, default: conf.get(key.rpartition(".")[2], default))
    return SimpleNamespace(
        sparkContext=SimpleNamespace(master=master, getConf=lambda: settings), version="4.2.0"
    )


@pytest.fixture
def files(tmp_path: Path) -> WritableFiles:
    return open_files(str(tmp_path / "cp"))


def _judged(files: WritableFiles, location: str, spark: Any, allowed: frozenset[str] = NONE) -> Any:
    return judge_dstream(spark, "sales", location, files, allowed)


def test_a_second_run_is_kept_away_by_the_lease(files: WritableFiles) -> None:
    assert _judged(files, "file:/cp", _spark()) == ()
    living = (process(os.getppid()),)
    files.write(PATH, render(Holder("r", "sales", host_name(), living, 3, int(time.time() * 1000))))
    with pytest.raises(Refused, match="in use") as refused:
        _judged(files, "file:/cp", _spark())
    assert f"--allow {IN_USE}" in refused.value.do
    assert _judged(files, "file:/cp", _spark(), frozenset({IN_USE})) == ()


@pytest.mark.parametrize("location", ["s3a://box/cp", "abfss://box@account/cp"])
def test_speculation_is_refused_where_a_rename_is_a_copy(
    location: str, files: WritableFiles
) -> None:
    with pytest.raises(Refused, match=r"spark\.speculation is on") as refused:
        _judged(files, location, _spark(speculation="true"))
    assert "--conf spark.speculation=false" in refused.value.do
    (told,) = _judged(files, location, _spark())
    assert "each rename is a copy" in told
    assert _judged(files, "hdfs://name/cp", _spark(speculation="true")) == ()


def test_a_disk_of_one_machine_under_a_cluster_is_refused(files: WritableFiles) -> None:
    with pytest.raises(Refused) as refused:
        _judged(files, "file:/cp", _spark("spark://name:7077"))
    assert "--allow " in refused.value.do


def test_what_receivers_take_is_logged_and_the_codec_is_the_folders(tmp_path: Path) -> None:
    """Spark reads a checkpoint with the codec that it writes; this folder is packed by snappy."""
    place = samples.write(tmp_path / "cp", golden("4.2/dstreams-scala"))
    declared = dstream(checkpoint=str(place), batch="1s")(lambda ssc: None)
    assert dict(_session(declared, str(place), RunOptions()).conf) == {
        LOG: "true",
        "spark.io.compression.codec": "snappy",
    }
    new = str(tmp_path / "new")
    assert dict(_session(declared, new, RunOptions()).conf) == {LOG: "true"}
    own = dstream(checkpoint=new, batch="1s", conf={LOG: "false"})(lambda ssc: None)
    assert dict(_session(own, new, RunOptions()).conf) == {LOG: "false"}


def test_the_file_that_a_recovery_took_is_named(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/dstreams"))
    found = floodmark.inspect(str(place)).dstreams
    assert found is not None
    newest = found.checkpoint_time_ms or 0
    assert _file_taken(found, newest) == "checkpoint-1794737452000"
    (place / "checkpoint-1794737452000").write_bytes(b"")  # Spark takes the one before
    torn = floodmark.inspect(str(place)).dstreams
    assert torn is not None
    assert _file_taken(torn, torn.checkpoint_time_ms or 0) == "checkpoint-1794737452000.bk"
    for known in (found, replace(found, restart_file=None), None):
        told = _file_taken(known, newest - 2000)
        assert (
            told == f"an older file, of the batch of {newest - 2000}: newer ones could not be read"
        )
