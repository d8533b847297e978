"""A checkpoint's files as data. Pure: bytes in, frozen dataclasses out, nothing opened."""
