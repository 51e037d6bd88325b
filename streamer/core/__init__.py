"""Values that all rooms share: messages, metadata, JSON, times, errors, redaction, counters."""
