"""Rows of tables, whatever the format is: column types, rows from messages, commits."""
