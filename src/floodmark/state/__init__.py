"""State files to Arrow and back. Nothing here opens a file."""
