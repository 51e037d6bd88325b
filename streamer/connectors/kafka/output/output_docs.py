"""Texts of the pages of the three outputs, which differ in their fields only."""

from __future__ import annotations

from typing import Final

from streamer.sdk.spec import Example

DESCRIPTION: Final = """\
The workers send records with librdkafka. A worker sends all available records to the brokers and
waits for them together, in any batches. With `max_in_flight: 1`, a batch is sent when the previous
one has been accepted; this keeps the order in all failures, and is slow without `batching`. A
record that is not accepted fails alone, and is sent again until it is accepted, unless the output
is inside a `fallback`, a `retry` or a `drop_on`.

### Records
- Selected metadata become headers, sorted by name: bytes unchanged, other values as text. A list
  gives a header for each of its items, as inputs with `multi_header` read them (Redpanda Connect
  writes such a list as JSON).
- An empty message with the metadata `kafka_tombstone_message: true` becomes a record without a
  value, a tombstone; so tombstones that are read are written as tombstones. `meta
  kafka_tombstone_message = true` with `root = ""` makes one.
- The timestamp is the largest event time of the message's window; for a `system_window` its end.
  Without a window it is the time of the record that was read from Kafka, otherwise the time of
  sending. `timestamp_ms` overrides it.

### Exactly once
With `transactional: true`, each worker sends its part of a micro-batch in one transaction, and
commits the micro-batch's number in it. If the micro-batch is repeated after a failure, existing
parts are skipped. Readers need `isolation.level=read_committed`.

The transactional ids, and the consumer groups with the numbers, are called `streamer-<id>-<part>`.
The user needs WRITE on transactional ids and READ on groups of that prefix, beside WRITE and READ
on the topic; the start reports missing rights. Records become visible at the end of a micro-batch.
A record that cannot be sent (too large, no such topic) fails the micro-batch, and finally the
stream, where an output without transactions would wait. The output must be the stream's `output`
itself.

Restart a killed stream within `offsets.retention.minutes` (7 days), because Kafka then forgets the
numbers. Restart it with the same windows first: a deploy that resets the windows reads the
interrupted micro-batch again as another one.

With `dedupe_headers: true` records are sent immediately, and the reader drops repetitions: the pair
of `batch_id` and `batch_sequence` identifies a record for ever. Records need a key (or
`partition`), so that repetitions go to the same partition. In Python:

```python
seen = {}  # the records of the newest micro-batch, for each partition and part of the stream


def is_new(partition, headers):
    stream, number, part = headers["batch_id"].decode().split("-", 2)
    newest, taken = seen.get((partition, stream, part), (-1, set()))
    if int(number) < newest:
        return False  # a micro-batch begins when the previous one is complete
    if int(number) > newest:
        newest, taken = int(number), set()
    if headers["batch_sequence"] in taken:
        return False
    taken.add(headers["batch_sequence"])
    seen[partition, stream, part] = (newest, taken)
    return True
```

`window_id_of` names the window. Its later emissions (late messages, updates) have the same id, so
only the pair distinguishes them from repetitions.

### Dead letters
Failed messages go to a separate topic, with their origin and error in the headers:

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

`fallback_error` has the error. `kafka_topic`, `kafka_partition` and `kafka_offset` have the origin
of messages from Kafka. Messages that windows drop have them too, with `window_drop_reason`, if
`late_output` names such an output.
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
