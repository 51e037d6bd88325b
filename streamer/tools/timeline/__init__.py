"""Timeline of messages and windows, as the window kernel decides on a scripted clock."""
