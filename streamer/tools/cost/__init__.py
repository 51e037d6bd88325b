"""The cost of a stream, estimated from sampled messages."""
