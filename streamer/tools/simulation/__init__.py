"""Runs of whole streams on sample messages and a scripted clock, without Spark."""
