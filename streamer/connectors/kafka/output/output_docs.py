"""Texts of the pages of the three outputs, which differ in their fields only."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import Example

DESCRIPTION: Final = """\
Records are sent from the workers by librdkafka. All that a worker has at hand goes to the brokers
at once and is waited for once, however it is cut into batches, unless `max_in_flight` is 1: then
a batch is sent when the one before it has been taken, which keeps the order whatever fails, and
is slow without `batching`. A record that is not taken has failed by itself, and is sent again
until it is, unless the output stands in a `fallback`, a `retry` or a `drop_on`.

### What a record is
- Metadata that are taken become headers, sorted by name: bytes as they are, other values as text.
  A list gives a header for each of its items, as inputs with `multi_header` read them (Redpanda
  Connect writes such a list as JSON).
- An empty message with the metadata `kafka_tombstone_message: true` becomes a record without a
  value, a tombstone; so tombstones that are read are written as such. `meta
  kafka_tombstone_message = true` with `root = ""` makes one.
- Its time is the largest event time of the window that the message comes from; a `system_window`
  knows none, and its end is taken. A message that was read from Kafka and went through no window
  has that record's time; any other the time at which it is sent. `timestamp_ms` says another.

### Exactly once
With `transactional: true` each worker sends its part of a micro-batch in one transaction, and
commits the micro-batch's number in it. When the micro-batch comes again after a failure, the parts
that are there already are left out. Readers need `isolation.level=read_committed`. The
transactional ids, and the consumer groups that hold the numbers, are called `streamer-<id>-<part>`:
the user needs WRITE on transactional ids and READ on groups of that prefix, beside WRITE and READ
on the topic; which of them is missing is said when the stream starts. Records become visible at the
end of a micro-batch. A record that cannot be sent (too large, no such topic) fails the micro-batch,
and at last the stream, where an output without transactions would wait. The output must be the
stream's `output` itself. A stream that was killed should be started again within
`offsets.retention.minutes` (7 days), for Kafka forgets the numbers then. It should be started with
the same windows first: a deploy that lets them begin anew reads the micro-batch that was cut off
again, as another one.

With `dedupe_headers: true` nothing is held back, and the reader drops what comes again: the pair
of `batch_id` and `batch_sequence` names a record for ever. Records need a key (or `partition`),
so that what comes again comes to the same partition. In Python:

```python
seen = {}  # what has been read of the newest micro-batch, for each partition and part of the stream


def is_new(partition, headers):
    stream, number, part = headers["batch_id"].decode().split("-", 2)
    newest, taken = seen.get((partition, stream, part), (-1, set()))
    if int(number) < newest:
        return False  # a micro-batch begins when the one before it is written whole
    if int(number) > newest:
        newest, taken = int(number), set()
    if headers["batch_sequence"] in taken:
        return False
    taken.add(headers["batch_sequence"])
    seen[partition, stream, part] = (newest, taken)
    return True
```

`window_id_of` names the window; what it emits again (late messages, updates) has the same, so it
tells versions of a result apart from repeats only together with the pair.

### Dead letters
Messages that failed go to a topic of their own, with what is known of them in the headers:

```yaml
output:
  fallback:
    - reject_errored:
        kafka_franz:
          seed_brokers: [localhost:9092]
          topic: results
    - kafka_franz:
        seed_brokers: [localhost:9092]
        topic: dead-letters
        key: ${! @kafka_key }
        metadata:
          include_patterns: [".*"]
```

`fallback_error` says why. Of messages that were read from Kafka `kafka_topic`, `kafka_partition`
and `kafka_offset` say where they are from. Messages that windows drop have them too, with
`window_drop_reason`, when `late_output` names an output of this kind.
"""


def output_examples(name: str) -> tuple[Example, ...]:
    """Return the examples of a component's page."""
    brokers = "addresses" if name == "kafka" else "seed_brokers"
    return (
        Example(
            "Results by key",
            "output:\n"
            f"  {name}:\n"
            f"    {brokers}: [localhost:9092]\n"
            "    topic: results\n"
            "    key: ${! this.id }\n",
        ),
        Example(
            "Exactly once",
            "output:\n"
            f"  {name}:\n"
            f"    {brokers}: [localhost:9092]\n"
            "    topic: results\n"
            "    transactional: true\n",
            "For readers with `isolation.level=read_committed`.",
        ),
    )
