"""Complaints of storage with a known cause: by code, by class and by Hadoop's words.

tests/integration/test_storage_refuses.py has them from real servers.
"""

from __future__ import annotations

import errno

import pytest

from floodmark.storage.complaints import known_complaint


@pytest.mark.parametrize(
    ("said", "what", "do"),
    [
        (
            "SafeModeException: Cannot create file/ck. Name node is in safe mode.",
            "safe mode",
            "wait",
        ),
        ("UnknownStoreException: `s3a://b/': Bucket does not exist", "no such bucket", "endpoint"),
        ("NoAuthWithAWSException: No AWS Credentials provided", "no credentials", "access.key"),
    ],
)
def test_what_hadoop_says(said: str, what: str, do: str) -> None:
    found = known_complaint("offsets/0", OSError(said))
    assert found is not None
    assert what in found.what
    assert do in found.do


def test_a_disk_and_what_nobody_knows() -> None:
    full = known_complaint("offsets/0", OSError(errno.ENOSPC, "No space left on device"))
    assert full is not None
    assert "the disk is full" in full.what
    assert known_complaint("offsets/0", OSError("something else")) is None
