"""Buffer components, one file each."""
