"""AMQP 1.0, which many brokers speak: connections, and messages as they are sent and received."""
