"""Exporters of traces: one file each, with its spec."""
