"""The state of a window's shards, cut anew for another number of shards.

The content is the same before and after: every message, aggregated group and record of a key goes
to the shard of its key, with its arrival number. Keys share nothing but the clocks, on which all
shards agree, and counters, of which only the sum is reported: the first shard takes it.
"""
