"""Delta Lake, by the library delta-rs."""
