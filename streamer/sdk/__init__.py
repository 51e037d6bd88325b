"""Specs, protocols and helpers for the author of a component."""
