"""The components that configs name, a package for each kind."""
