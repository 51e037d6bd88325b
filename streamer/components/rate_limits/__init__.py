"""Rate limit components, one file each."""
