"""AMQP 0.9.1, the protocol of RabbitMQ: connections, and messages as they are sent and received."""
