"""Cache components, one file each."""
