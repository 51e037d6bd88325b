"""What runs beside a stream: its HTTP server and its metrics."""
