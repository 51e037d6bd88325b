"""A stream's past as a batch: many parts of its input side by side, with the stream's own windows.

**Steps.** The input between its beginning and its end is cut into *segments*, each a micro-batch
(`segments`). Stage 1 packs each segment once, by itself, in any order (`scan`): what it makes does
not depend on other segments. Beside the packs it notes the clock of the segment, its largest event
time. The clock before a segment is the largest of all earlier ones. Stage 2 then runs over the
packs (`window_run`), and a last step sends the results, in order, to the outputs (`sending`).

**Why the windows are the stream's.** The reference is the stream that reads these segments as its
micro-batches. A stream with one partition has the same windows however its input is cut, so there
the reference is every stream. Stage 2 is divided in one of three ways (`division`):

- *Keys.* A shard of the stream never sees the rows of another. One task for each shard takes the
  rows of all segments, in order. It does what the stream's shard does, so nothing is to be proven.
- *Ranges.* A range is a run of segments. It owns what its micro-batches emit and drop. Its task
  starts earlier, at a segment p, with an empty state and the clock C(p) before it. Let C be the
  clock before the range. A window that is open there has end + lateness > C, and all of its events
  are at end - reach or later: after C - lateness - reach. No event before p is later than C(p). So
  with C(p) <= C - lateness - reach, the task sees all events of every such window, in order, with
  the clock that each had. Lateness is decided by the clock alone. The state is the stream's.
- *Whole.* One task takes all shards: where windows feed others, or processors share a cache.

What a task emits before its own range belongs to earlier ranges and is left out.
"""
