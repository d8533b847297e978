"""Turns known complaints of storage into errors that say what to do."""

from __future__ import annotations

import errno
from typing import Any

from floodmark.errors import CannotRead

_S3 = {
    "RequestTimeTooSkewed": (
        "the storage refuses the clock of this machine",
        "S3 accepts only requests whose time differs from its own by at most 15 minutes.",
        "Set the clock of this machine, and repeat the command.",
    ),
    "InvalidAccessKeyId": (
        "the storage does not know the access key",
        "The key is wrong, or belongs to another store.",
        "Check key and endpoint_url of --storage, or AWS_ACCESS_KEY_ID.",
    ),
    "SignatureDoesNotMatch": (
        "the secret does not fit the access key",
        "The storage computes another signature of the request than this machine.",
        "Check secret of --storage, or AWS_SECRET_ACCESS_KEY.",
    ),
    "ExpiredToken": (
        "the credentials have expired",
        "A session token is valid for some hours.",
        "Get new credentials, and repeat the command.",
    ),
}
_NO_CREDENTIALS = (
    "there are no credentials for this storage",
    "Neither --storage nor the environment nor a profile of this machine has any.",
    "Pass --storage key=… --storage secret=…, or set AWS_PROFILE or AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY.",
)
_SAFE_MODE = (
    "the NameNode is in safe mode",
    "HDFS allows reading, but accepts no changes until it leaves that mode.",
    "Wait for that (hdfs dfsadmin -safemode wait), and repeat the command.",
)
_HADOOP_CREDENTIALS = (
    "there are no credentials for this storage",
    "Hadoop has none in the session's settings, and found none on this machine.",
    "Pass --conf spark.hadoop.fs.s3a.access.key=… --conf spark.hadoop.fs.s3a.secret.key=…, or "
    "name a provider in spark.hadoop.fs.s3a.aws.credentials.provider.",
)
_HADOOP_BUCKET = (
    "there is no such bucket",
    "The storage answers, but has no bucket with that name.",
    "Check the name and spark.hadoop.fs.s3a.endpoint. Floodmark makes no buckets.",
)
_AZURE_CONTAINER = (
    "there is no such container",
    "The storage answers, and has no container of that name.",
    "Check the name, and account_name of --storage. Floodmark makes no containers.",
)
_AZURE_KEY = (
    "the storage does not accept the key",
    "The account computes another signature of the request than this machine.",
    "Check account_key or connection_string of --storage.",
)
_AZURE_CREDENTIALS = (
    "there are no credentials for this storage",
    "Neither --storage nor the environment has any, and no sign-in of this machine holds.",
    "Pass --storage account_key=…, or set AZURE_STORAGE_CONNECTION_STRING.",
)
_HADOOP_S3 = {
    **_S3,
    "InvalidAccessKeyId": (
        *_S3["InvalidAccessKeyId"][:2],
        "Check spark.hadoop.fs.s3a.access.key and spark.hadoop.fs.s3a.endpoint.",
    ),
    "SignatureDoesNotMatch": (
        *_S3["SignatureDoesNotMatch"][:2],
        "Check spark.hadoop.fs.s3a.secret.key.",
    ),
}
_SILENT = (
    "the storage does not answer",
    "",
    "Check the address (endpoint_url of --storage) and the network, and repeat the command.",
)
# How botocore and requests name it, which HDFS is read with.
_TIMEOUTS = ("ReadTimeoutError", "ConnectTimeoutError", "ReadTimeout", "ConnectTimeout")
# What a driver or Hadoop says, and no code or class of an error tells.
_WORDS = {
    "is in safe mode": _SAFE_MODE,
    "NoAuthWithAWSException": _HADOOP_CREDENTIALS,
    "Unable to load credentials": _HADOOP_CREDENTIALS,
    "No AWS Credentials": _HADOOP_CREDENTIALS,
    "UnknownStoreException": _HADOOP_BUCKET,
    "NoSuchBucket": _HADOOP_BUCKET,
    **_HADOOP_S3,
    "specified container does not exist": _AZURE_CONTAINER,
    "Server failed to authenticate the request": _AZURE_KEY,
    "DefaultAzureCredential failed": _AZURE_CREDENTIALS,
}
_FULL = (
    "the disk is full",
    "",
    "Free some space there, and repeat the command.",
)


def known_complaint(location: str, error: BaseException) -> CannotRead | None:
    """Recognise a driver's error by its code, its class or its words."""
    found = _S3.get(_code(error)) or _by_kind(error) or _by_words(str(error))
    if found is None:
        return None
    what, why, do = found
    return CannotRead(f"{location}: {what}", why or str(error), do)


def no_bucket(location: str, bucket: str) -> CannotRead:
    """Return an error other than `NotThere`: floodmark makes new folders, but no buckets."""
    return CannotRead(
        f"{location}: there is no bucket {bucket}",
        "The storage answers, but has no bucket with that name for these credentials.",
        "Check the name and endpoint_url of --storage. Floodmark makes no buckets.",
    )


def is_no_bucket(error: BaseException) -> bool:
    return _code(error) == "NoSuchBucket"


def _by_kind(error: BaseException) -> tuple[str, str, str] | None:
    if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
        return _NO_CREDENTIALS
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _FULL
    if type(error).__name__ in _TIMEOUTS:
        return _SILENT
    return None


def _by_words(said: str) -> tuple[str, str, str] | None:
    return next((found for words, found in _WORDS.items() if words in said), None)


def _code(error: BaseException) -> str:
    """Return S3's own error code; s3fs keeps it in the cause of its error."""
    for one in (error, error.__cause__):
        response: dict[str, Any] = getattr(one, "response", None) or {}
        code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
        if code:
            return str(code)
    return ""
