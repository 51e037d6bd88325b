"""What JSON texts hold that a fast reader does not tell: depth, faults, the spelling of numbers."""
