"""The settings of windows, and the grids of their panes."""
