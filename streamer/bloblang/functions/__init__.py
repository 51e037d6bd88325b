"""Bloblang's functions, a file for each category; `catalog.py` lists them."""
