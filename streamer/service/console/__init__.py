"""The web console: a page and its assets, which ask the API for all that they show."""
