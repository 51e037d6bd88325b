"""Clusters: executors, parallelism, submission."""
