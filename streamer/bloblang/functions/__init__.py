"""Bloblang's functions, a file for each category; `catalogue.py` lists them."""
