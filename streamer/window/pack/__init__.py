"""Packs: many messages as one binary value."""
