"""Who may call the API: authentication, origins, limits of connections."""
