"""Fields and rules that the window buffers share."""
