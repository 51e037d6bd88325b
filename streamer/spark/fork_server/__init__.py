"""Forks Python's workers from one process that has imported all they need."""
