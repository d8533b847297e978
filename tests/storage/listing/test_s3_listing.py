"""What S3 lists, page by page, is all that is there."""

from __future__ import annotations

from typing import Any

import pytest

from floodmark.storage.listing import s3_listing

KEYS = ("ck/", "ck/a", "ck/x", "ck/x/1", "ck/x/2", "ck/z", "ckz")


class Store:
    """Answers as S3 does, in pages of two names."""

    req_kw: dict[str, Any] = {}  # noqa: RUF012 - as s3fs has it

    @staticmethod
    def split_path(place: str) -> tuple[str, str, None]:
        bucket, _, key = place.partition("/")
        return bucket, key, None

    @staticmethod
    def call_s3(_: str, Prefix: str, **more: Any) -> dict[str, Any]:  # noqa: N803 - S3's own word
        after = more.get("ContinuationToken", more.get("StartAfter", ""))
        below = [key for key in KEYS if key.startswith(Prefix)]
        delimiter = more.get("Delimiter")
        names = {
            Prefix + cut[0] + "/" if delimiter and len(cut) > 1 else key: None
            for key in below
            for cut in [key[len(Prefix) :].split("/")]
        }
        page = [name for name in sorted(names) if name > after][: more.get("MaxKeys", 2)]
        whole = not page or page[-1] == max(names)
        return {
            "Contents": [{"Key": one, "Size": 1} for one in page if one in KEYS],
            "CommonPrefixes": [{"Prefix": one} for one in page if one not in KEYS],
            "IsTruncated": not whole,
            **({} if whole else {"NextContinuationToken": page[-1]}),
        }


def test_every_page_is_read() -> None:
    found, whole = s3_listing.all_below(Store(), "b/ck")
    assert list(found) == [f"b/{key}" for key in KEYS if key.startswith("ck/")]
    assert whole


@pytest.mark.parametrize("most", [1, 3])
def test_a_listing_that_stops_early_says_so(most: int) -> None:
    found, whole = s3_listing.all_below(Store(), "b/ck", most)
    assert most <= len(found) < len(KEYS)
    assert not whole


def test_an_object_and_a_folder_may_have_one_name() -> None:
    found = s3_listing.level(Store(), "b/ck")
    assert {name: one.get("type") for name, one in found.items()} == {
        "b/ck/": None,
        "b/ck/a": None,
        "b/ck/x": None,
        "b/ck/x/": "directory",
        "b/ck/z": None,
    }
