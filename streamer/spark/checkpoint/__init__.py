"""The checkpoint: its directory, lock, revisions and shards."""
