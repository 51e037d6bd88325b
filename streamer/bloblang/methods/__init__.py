"""Bloblang's methods, a file for each category; `catalog.py` lists them."""
