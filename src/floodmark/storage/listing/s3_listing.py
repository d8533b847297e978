"""Lists objects on S3 with no request beyond the pages of the listing.

Where a folder is absent, s3fs lists the folder above it as well, or asks for a file of its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_PAGE = 1000
Objects = dict[str, dict[str, Any]]
"""What S3 and s3fs know of each object, by bucket and key."""


def one_page(fs: Any, place: str, **more: Any) -> tuple[Objects, bool]:
    """Return the first page of a listing, and whether it is all."""
    answer = next(_pages(fs, place, **more))
    return _objects(fs, place, answer), not answer.get("IsTruncated")


def all_below(fs: Any, place: str, most: int | None = None) -> tuple[Objects, bool]:
    """Return the objects below a place, and whether these are all; `most` may stop early."""
    found: Objects = {}
    limit = {"MaxKeys": min(most, _PAGE)} if most else {}
    for page in _pages(fs, place, **limit):
        found.update(_objects(fs, place, page))
        if most and len(found) >= most:
            return found, False
    return found, True


def level(fs: Any, place: str) -> Objects:
    """Return the objects and folders directly below a place; none where it is absent."""
    found: Objects = {}
    bucket = _bucket(fs, place)
    for page in _pages(fs, place, Delimiter="/"):
        found.update(_objects(fs, place, page))
        for one in page.get("CommonPrefixes", ()):
            # With its slash: an object may have the same name.
            found[f"{bucket}/{one['Prefix']}"] = {"type": "directory"}
    return found


def is_object(fs: Any, place: str) -> bool:
    """Whether the place is one object; a bucket is none."""
    bucket, key, _ = fs.split_path(place)
    try:
        return bool(key and fs.call_s3("head_object", Bucket=bucket, Key=key, **fs.req_kw))
    except FileNotFoundError:
        return False


def _pages(fs: Any, place: str, **more: Any) -> Iterator[dict[str, Any]]:
    bucket, key, _ = fs.split_path(place)
    prefix = f"{key}/" if key else ""
    request = {"Bucket": bucket, "Prefix": prefix, **fs.req_kw, **more}
    if after := request.pop("After", None):
        request["StartAfter"] = prefix + after
    while True:
        answer = fs.call_s3("list_objects_v2", **request)
        yield answer
        if not answer.get("IsTruncated"):
            return
        request["ContinuationToken"] = answer["NextContinuationToken"]


def _objects(fs: Any, place: str, page: dict[str, Any]) -> Objects:
    bucket = _bucket(fs, place)
    return {
        f"{bucket}/{one['Key']}": {**one, "size": one["Size"]} for one in page.get("Contents", ())
    }


def _bucket(fs: Any, place: str) -> str:
    return str(fs.split_path(place)[0])
