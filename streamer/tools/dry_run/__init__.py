"""Whether a stream could start: everything that it needs is looked at, and no message is moved."""
