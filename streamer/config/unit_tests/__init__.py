"""The `tests` section of a config."""
