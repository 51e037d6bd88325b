"""Pictures of a plan: what a message passes, and which of Spark's stages that is in."""
