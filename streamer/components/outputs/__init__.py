"""Output components, one file each."""
