"""What is known about one kind of source or sink: a package a kind. Nothing here opens a file."""
