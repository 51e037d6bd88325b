"""What a task knows of its micro-batch."""
