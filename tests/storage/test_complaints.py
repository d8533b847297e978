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
        (
            "AccessDeniedException: s3a://b/ck: listObjects(): software.amazon.awssdk.services.s3."
            "model.S3Exception: … (Service: S3, Status Code: 403):SignatureDoesNotMatch",
            "the secret does not fit the access key",
            "spark.hadoop.fs.s3a.secret.key",
        ),
        (
            "AccessDeniedException: s3a://b/ck: … (Status Code: 403):InvalidAccessKeyId",
            "does not know the access key",
            "spark.hadoop.fs.s3a.access.key",
        ),
        ("The specified container does not exist.\nRequestId:1", "no such container", "name"),
        ("Server failed to authenticate the request. Make sure …", "the key", "account_key"),
        (
            "DefaultAzureCredential failed to retrieve a token from the included credentials.",
            "no credentials",
            "account_key",
        ),
        ("AccessDeniedException: … :RequestTimeTooSkewed", "refuses the clock", "Set the clock"),
    ],
)
def test_what_hadoop_and_drivers_say(said: str, what: str, do: str) -> None:
    found = known_complaint("offsets/0", OSError(said))
    assert found is not None
    assert what in found.what
    assert do in found.do


def test_a_disk_and_what_nobody_knows() -> None:
    full = known_complaint("offsets/0", OSError(errno.ENOSPC, "No space left on device"))
    assert full is not None
    assert "the disk is full" in full.what
    assert known_complaint("offsets/0", OSError("something else")) is None
