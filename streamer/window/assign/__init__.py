"""Stage 1: assigns messages to panes and packs them."""
