"""One run of a stream: start, revisions, end."""
