"""Sources that make their messages."""
