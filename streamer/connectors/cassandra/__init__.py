"""Cassandra, and databases with its protocol, such as ScyllaDB."""
