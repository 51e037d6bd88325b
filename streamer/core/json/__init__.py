"""Properties of JSON texts that a fast reader hides: depth, faults, spelling of numbers."""
