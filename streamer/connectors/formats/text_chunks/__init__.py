"""Texts cut into chunks for models: at separators, by the structure of Markdown, by tokens."""
