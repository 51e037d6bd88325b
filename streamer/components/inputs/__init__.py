"""Input components, one file each."""
