"""Many streams in one program: what is deployed, what runs, and what happened to it."""
