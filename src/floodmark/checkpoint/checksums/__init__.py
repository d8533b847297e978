"""Reads and writes the checksums that Hadoop keeps beside the files of a local disk. Pure."""
