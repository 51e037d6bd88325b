"""Where traces go: one file per exporter, each with its spec."""
