"""Code in Python that configs have: checked, loaded in workers, called within bounds."""
