"""Expectations: named conditions on messages and batches, as the processor `expect` has them."""
