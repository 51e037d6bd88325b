"""Completion in shells: `streamer completion`, and the answers to what its scripts send."""
