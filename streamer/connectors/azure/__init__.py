"""Azure: storage accounts, their credentials, and clients of their services."""
