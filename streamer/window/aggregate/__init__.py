"""Aggregates of windows: the accumulators of a mapping's aggregates, and what keeps their states.

Each kind of aggregate has a file (`count`, `count_by`, `distinct`, `sum_min_max`, `first_last`,
`top_k`, `any_all`, and `filtered` around them) with one class that has both its forms (see
`accumulator`); `registry` chooses it. Where windows close together, stage 1 pre-aggregates messages
in the column form (`pre_aggregator`), packs of groups are kept and merged like packs of messages
(`aggregate_codec`, `partial_aggregates`), and a window's groups are fired as `PreAggregatedBatch`es
(`fire_groups`). Where they close key by key, `mapping_aggregation` adds message by message.
"""
