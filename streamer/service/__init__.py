"""The long-lived service: streams, REST API, watcher, metrics."""
