"""Comparison of the windows of two revisions of a stream, which read the same input."""
