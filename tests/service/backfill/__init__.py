"""Tests of backfills."""
