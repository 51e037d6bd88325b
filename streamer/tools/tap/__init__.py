"""The first messages of a stream after each stage, without Spark and without writing anything."""
