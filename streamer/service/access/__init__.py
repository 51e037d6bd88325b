"""Access to the API: authentication, origins, limits of connections."""
