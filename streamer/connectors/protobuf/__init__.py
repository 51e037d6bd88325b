"""Protobuf without generated code: files compiled to descriptors, and messages read by these."""
