"""The types that the kernel and its callers share."""
