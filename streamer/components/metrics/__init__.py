"""Exporters of metrics: one file each, with its spec."""
