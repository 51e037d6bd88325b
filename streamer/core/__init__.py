"""Values that all packages share: messages, metadata, JSON, times, errors, redaction, counters."""
