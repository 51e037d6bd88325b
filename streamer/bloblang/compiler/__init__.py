"""From a resolved tree to one Python function: generated source, compiled once."""
