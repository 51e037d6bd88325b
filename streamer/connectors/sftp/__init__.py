"""Servers of SFTP: connections, and files on them."""
