"""Search engines with the bulk API of Elasticsearch: Elasticsearch itself, and OpenSearch."""
