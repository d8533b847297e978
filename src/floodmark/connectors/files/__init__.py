"""Files: the file source's list of seen files, the file sink's list of written ones."""
