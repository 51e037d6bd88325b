"""Errors of models."""

from __future__ import annotations

from streamer.core.errors import MessageError


class ModelError(MessageError):
    """A model has given no usable answer for a message."""
