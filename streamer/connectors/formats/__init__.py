"""Bytes that others have agreed on: codecs, archives, schemas, Avro as JSON, rows of Parquet."""
