"""Jobs that people ask for, run for real: a recipe, 100,000 events out of order, an oracle.

Each file of `catalog/` is one job. `python -m tests.jobs NAME…` runs some, or all.
"""
