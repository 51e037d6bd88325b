"""Metrics and traces of a service."""
