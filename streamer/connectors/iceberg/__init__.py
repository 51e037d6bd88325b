"""Apache Iceberg, by the library PyIceberg."""
