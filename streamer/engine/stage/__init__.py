"""What a task runs: read and pack messages, fire windows, encode for the outputs."""
