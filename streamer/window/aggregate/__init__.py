"""Folded groups: a group's first message, its number of messages, what a mapping's parts come to.

Stage 1 folds messages as they come (`folder`), packs of folded groups are kept and joined like
others (`pack`, `groups`), and a window's groups are given back as `PreAggregatedBatch`es
(`release`).
"""
