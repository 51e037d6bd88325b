"""Google Cloud: credentials, and the JSON API of Pub/Sub."""
