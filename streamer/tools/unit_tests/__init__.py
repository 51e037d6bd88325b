"""Unit tests of configs: found, run and reported; processors as in Benthos, and whole streams."""
