"""HDFS, by the protocol of its NameNodes and DataNodes."""
