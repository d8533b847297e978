"""Gives one name to a place that can be written in several ways, by its text alone."""

from __future__ import annotations

# Hadoop's names for one storage.
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "abfs", "wasb": "abfs"}

_ALIKE = {"s3a": "s3", "s3n": "s3", "hdfs": "", "webhdfs": "", "viewfs": "", "file": ""}


def plain_place(location: str) -> str:
    """Return `/x` for `file:/x/`, `file:///x` and `/x`, and `s3://b/x` for `s3a://b/x/`.
    `s3a://b/x/` and `s3://b/x` are `s3://b/x`.

    A relative path stays one: where it begins is not in the text.
    """
    if location.startswith("file:"):
        location = "/" + location[len("file:") :].lstrip("/")
    scheme, separator, rest = location.partition("://")
    if not separator:
        parts = [part for part in location.split("/") if part not in ("", ".")]
        return ("/" if location.startswith("/") else "") + "/".join(parts)
    host, _, folder = rest.partition("/")
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    scheme = scheme.lower()
    return f"{_SCHEMES.get(scheme, scheme)}://{'/'.join([host, *parts])}"


def comparable_place(location: str) -> str:
    """Return the place without the parts that differ between two spellings of it."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return "/" + location.strip("/")
    kind = _ALIKE.get(scheme, scheme)
    if scheme in ("hdfs", "webhdfs", "viewfs") and rest.startswith("//"):
        rest = rest[2:].partition("/")[2]  # a name node's address differs by protocol
    return f"{kind}/{rest.strip('/')}"
