"""Checks of a config that has been read."""
