"""Windows that open and close key by key.

These are session, sliding and count windows, and tumbling and hopping windows that have a clock, an
idle timeout or an output per event or per change for each key.

A shard keeps two things in its state. Key buckets (`key_buckets`) hold a small record of every key:
its open windows, many keys to one value of the state. The message store (`message_store`) holds
messages in the packs that they came in. Which windows an event belongs to, and when a window
closes, are the rules of its kind (`window_rules`, and one module for each kind).

A micro-batch (`step`) processes the keys that have messages, and those that are due: it assigns
messages to windows (`assigning`), and emits and closes windows (`closing`). Work that is cheaper
for many keys at once is queued (`emit_queue`) and done at the end: batches are emitted (`emit`),
and messages that no window needs are freed.

Joins keep no records: messages wait in one message store for each side (`join_step`).
"""
