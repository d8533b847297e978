"""Reads a DStreams folder as data: its files, its application, its batches."""
