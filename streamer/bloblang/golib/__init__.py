"""Behaviours of Go's standard library."""
