"""How long one message takes: requests, events and windows, beside bare Spark and Benthos."""
