"""Everything that knows Spark; nothing outside this package imports pyspark at module level."""
