"""Sessions that are found for all keys of a shard at once, over sorted columns.

A session whose mapping asks for sums, extremes and counts of numbers, and which is emitted once, at
its end, needs nothing that is decided message by message: its messages are those that lie within
the gap of each other, whatever their order, as long as none comes when the clock is beyond the
allowed lateness. Such sessions are kept as columns, and rows of them become objects only when they
have ended. A key with a message of which that does not hold goes, with the sessions that it has
open, the way of all others (`keyed.step`), until it has none open there.
"""
