"""Windows that all keys share, kept as panes."""
