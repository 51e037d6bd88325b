"""The stages without Spark, for tests of configs and for tools."""
