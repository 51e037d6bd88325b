"""Tests of estimates of cost."""
