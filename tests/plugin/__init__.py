"""What the suite adds to pytest: tiers, a sample by seed, workers, and a report of its times."""
