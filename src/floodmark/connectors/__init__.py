"""Holds everything known about each kind of source or sink: a module or small package a kind.

`offset.py` (or the module itself) is pure: it recognises, explains and moves offsets. `live.py`
asks the real source, `sink.py` reads what a sink remembers. `registry` finds the kinds.
"""
