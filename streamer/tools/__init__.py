"""Tools that need no Spark."""
