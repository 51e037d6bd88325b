"""NATS: the fields of its components, connections, and records of what is received.

The client is asyncio's; a thread with an event loop lets it be used from anywhere.
"""
