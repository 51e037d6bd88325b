"""Attacks on a service that is started as the docs tell people to."""
