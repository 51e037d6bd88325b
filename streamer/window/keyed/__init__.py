"""Windows that are decided key by key.

They are sessions, sliding and count windows, and grids with a clock, a patience or an output of
their own for each key.

A shard keeps two things. The drawers (`drawers`) hold a small record of every key, many keys to a
value of the store; the ledger (`ledger`) holds messages in the packs that they came in. What a kind
of window does with an event, and when its windows close, are its rules (`rules` and beside it).

A micro-batch (`step`) goes through the keys that have messages, or that are due: it puts messages
into windows (`taking`) and lets windows come out and close (`closing`). What can be done for many
keys together is put off to the end (`pending`): batches are made (`emitting`), messages given back.
"""
