"""The panes of a shard in the state store."""
