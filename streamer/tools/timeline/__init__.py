"""Which message falls into which window, as the window kernel decides it on a scripted clock."""
