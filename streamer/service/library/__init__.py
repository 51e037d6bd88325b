"""Streams in a Python program or a notebook: load, check, test, run, and show their windows."""
