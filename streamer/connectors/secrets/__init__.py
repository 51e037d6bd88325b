"""Stores of secrets outside: files, Vault, AWS Secrets Manager, Redis."""
