"""Google Cloud: credentials, and its JSON APIs."""
