"""Checkpoints that earlier versions have made, and whether this one goes on with them."""
