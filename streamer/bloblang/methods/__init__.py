"""Bloblang's methods, a file for each category; `catalogue.py` lists them."""
