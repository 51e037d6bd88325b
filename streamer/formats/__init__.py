"""Bytes that others have agreed on: codecs, archives, Avro as JSON, rows of Parquet."""
