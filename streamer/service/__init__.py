"""Runs of streams, one and many: HTTP API, console, metrics."""
