"""The column path: sessions of all keys of a shard, computed at once over sorted columns.

It is for sessions that are emitted once, at their end, and whose mapping needs only sums, extremes
and counts of numbers. If no message is late, the messages of such a session are those that lie
within the gap of each other, in whatever order they came, so that no message must be processed by
itself. Sessions are kept as columns, and become objects only when they have closed.

A key with a message for which this does not hold takes the row path (`keyed.step`) with all its
open sessions, until it has none open there.
"""
