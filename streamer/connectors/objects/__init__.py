"""Objects of a store (S3, GCS, Azure, HDFS), read by position; see `store.ObjectStore`."""
