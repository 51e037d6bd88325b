"""MongoDB: the fields of its components, connections, documents and writes."""
