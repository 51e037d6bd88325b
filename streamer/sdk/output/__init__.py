"""Outputs: protocols, sending in order, retries, refusals."""
