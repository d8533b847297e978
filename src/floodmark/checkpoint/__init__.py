"""Turns a checkpoint's files into data. Pure: bytes in, frozen dataclasses out, nothing opened."""
