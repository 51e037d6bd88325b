"""Stages of a task: read and pack messages, fire windows, encode for the outputs."""
