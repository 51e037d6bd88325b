"""Emits the windows that have closed."""
