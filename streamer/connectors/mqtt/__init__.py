"""MQTT: what the input and the output have in common, on paho's client."""

from __future__ import annotations

from streamer.connectors.mqtt.client import (
    CLIENT_FIELDS,
    MqttError,
    client_problems,
    connect,
    reason_text,
)

__all__ = ["CLIENT_FIELDS", "MqttError", "client_problems", "connect", "reason_text"]
