"""What the rows of the proof do, one file for each group of faults."""
