"""Reports of tasks to the driver besides data: counters, latencies, samples, errors."""
