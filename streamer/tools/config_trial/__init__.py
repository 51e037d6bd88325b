"""Trials of configs before a deploy: in processes of their own, with bounds."""
