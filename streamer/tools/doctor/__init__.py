"""Diagnosis of an installation: what streams need of a machine, and what to do about the rest."""
