"""Writes by WebHDFS, to a NameNode and to HttpFS, which knows no option of a rename.

tests/storage/test_files.py has a real NameNode.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from floodmark.storage import webhdfs


class _Hdfs:
    """What fsspec's driver is to these writes."""

    def __init__(self, knows_options: bool) -> None:
        self.files: dict[str, bytes] = {}
        self.knows_options = knows_options
        self.session = SimpleNamespace(put=self._put)
        self.fails = ""

    def _apply_proxy(self, location: str) -> str:
        return location

    def _call(self, op: str, _method: str, path: str, **given: Any) -> Any:
        if op == self.fails:
            raise OSError("no answer")
        if op == "CREATE":
            return SimpleNamespace(headers={"Location": path})
        if op == "DELETE":
            return _said({"boolean": self.files.pop(path, None) is not None})
        goal = given["destination"]
        if "renameoptions" in given and self.knows_options:
            self.files[goal] = self.files.pop(path)
            return SimpleNamespace(content=b"")
        if goal in self.files:
            return _said({"boolean": False})
        self.files[goal] = self.files.pop(path)
        return _said({"boolean": True})

    def _put(self, location: str, data: bytes, **_: Any) -> Any:
        if self.fails == "data node":
            said = {"RemoteException": {"message": "Name node is in safe mode."}}
            return SimpleNamespace(ok=False, json=lambda: said)
        self.files[location] = data
        return SimpleNamespace(ok=True)


def _said(document: dict[str, bool]) -> Any:
    return SimpleNamespace(content=json.dumps(document).encode(), json=lambda: document)


@pytest.fixture(params=[True, False], ids=["NameNode", "HttpFS"])
def hdfs(request: pytest.FixtureRequest) -> _Hdfs:
    return _Hdfs(request.param)


def test_a_write_replaces_and_leaves_nothing_beside(hdfs: _Hdfs) -> None:
    webhdfs.write_file(hdfs, "/ck/offsets/0", b"first")
    webhdfs.write_file(hdfs, "/ck/offsets/0", b"second")
    assert hdfs.files == {"/ck/offsets/0": b"second"}


def test_a_name_that_is_taken_is_not_created(hdfs: _Hdfs) -> None:
    assert webhdfs.create_file(hdfs, "/ck/commits/0", b"first")
    assert not webhdfs.create_file(hdfs, "/ck/commits/0", b"second")
    assert hdfs.files == {"/ck/commits/0": b"first"}


@pytest.mark.parametrize("fails", ["CREATE", "data node", "RENAME"])
def test_what_fails_changes_nothing_and_is_told(fails: str, hdfs: _Hdfs) -> None:
    webhdfs.write_file(hdfs, "/ck/metadata", b"old")
    hdfs.fails = fails
    for change in (webhdfs.write_file, webhdfs.create_file):
        with pytest.raises(OSError, match=r"no answer|is in safe mode"):
            change(hdfs, "/ck/metadata", b"new")
    assert hdfs.files == {"/ck/metadata": b"old"}


def test_every_request_has_a_limit() -> None:
    """Reads of fsspec's driver as well; it keeps its drivers, which are opened more than once."""
    given: list[Any] = []
    session = SimpleNamespace(request=lambda *_told, **more: given.append(more["timeout"]))
    fs = SimpleNamespace(session=session)
    for _ in range(3):
        webhdfs.limit_waits(fs)
    session.request("GET", "http://name-node")
    assert given == [(webhdfs.CONNECT_SECONDS, webhdfs.SILENT_SECONDS)]
