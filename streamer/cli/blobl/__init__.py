"""`streamer blobl`: try a mapping on documents, in a pipe, on a terminal or in a browser."""
