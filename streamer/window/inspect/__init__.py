"""Reads the open windows of a shard for people: which there are, and what is in one of them."""
