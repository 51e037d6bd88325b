"""What the window buffers have in common: their fields, and what they refuse and give."""
