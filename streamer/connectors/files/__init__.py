"""Replayable sources without Spark: what an input must offer, byte ranges of files, the spool."""
