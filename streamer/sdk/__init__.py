"""What the author of a component uses."""
