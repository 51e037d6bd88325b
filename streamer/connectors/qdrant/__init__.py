"""Qdrant, a database of vectors, by its API over gRPC."""
