"""Templates: components that a file makes out of others, by a mapping. As in Benthos."""
