"""Models that chat and make embeddings, by the HTTP APIs of those who run them."""
