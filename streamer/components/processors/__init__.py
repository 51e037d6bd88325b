"""Processor components, one file each."""
