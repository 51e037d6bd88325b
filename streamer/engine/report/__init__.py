"""What tasks report to the driver besides data: counters, latencies, samples, errors."""
