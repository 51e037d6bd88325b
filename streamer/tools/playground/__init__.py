"""Trials of mappings: applied to documents, in processes of their own with bounds where asked."""
