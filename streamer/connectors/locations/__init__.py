"""Objects of stores by URL, wherever a field takes the path of a file; see `core/locations`."""
