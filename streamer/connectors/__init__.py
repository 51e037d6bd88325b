"""Systems outside and the formats of their data, shared by components."""
